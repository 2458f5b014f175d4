"""One session with the hub: compare books until both agree, then one batch at a time."""

from __future__ import annotations

from edge_agent.channel import Channel, refusal
from edge_agent.link import BatchSource, LinkCounts, LinkTimings, OutboxState
from shared.errors import Code, IntegrityError, SecurityError, TransientError
from shared.host.log import get_logger
from shared.wire import (
    PROTOCOL,
    Ack,
    Hello,
    HelloVerdict,
    HubMessage,
    Refused,
    Welcome,
    batch_message,
    decode_batch,
    next_chain,
    schema_hash,
)

# A fence or a resync leads to a new epoch, which is greeted in turn; a third round means a fault.
_MAX_GREETINGS = 3
_log = get_logger("link")


class Session:
    """The edge's side of the protocol over one channel."""

    def __init__(
        self, channel: Channel, source: BatchSource, boot_id: bytes, timings: LinkTimings, counts: LinkCounts
    ) -> None:
        self._channel = channel
        self._source = source
        self._boot_id = boot_id
        self._timings = timings
        self._counts = counts
        self._books: OutboxState | None = None
        self._generation = 0

    async def greet(self) -> tuple[OutboxState, Welcome]:
        """Say hello and do what the hub's verdict asks, until it says to go on."""
        for _ in range(_MAX_GREETINGS):
            books = await self._source.hello()
            welcome = _welcome(await self._channel.exchange(self._hello(books), self._timings.hello_s))
            if await self._agree(books, welcome):
                self._books, self._generation = books, welcome.generation
                return books, welcome
        raise TransientError(Code.FENCED, "the hub and this edge do not come to an agreement")

    async def send(self, body: bytes) -> Ack:
        """Send a sealed batch, check its ack and hand it to the store."""
        if self._books is None:
            raise TransientError(Code.NO_SESSION, "no hello yet")
        books, batch = self._books, decode_batch(body)
        reply = await self._channel.exchange(batch_message(books.tenant, body), self._timings.ack_s)
        if isinstance(reply, Refused):
            raise refusal(reply)
        if not isinstance(reply, Ack):
            raise SecurityError(Code.MALFORMED, "not an answer to a batch", got=type(reply).__name__)
        if (reply.epoch, reply.last_seq) != (batch.epoch, batch.last_seq):
            raise TransientError(Code.GAP, "the hub acknowledged another batch", seq=reply.last_seq)
        if reply.generation != self._generation:
            raise TransientError(Code.STALE_EPOCH, "the hub is another one than at our hello")
        if reply.chain != next_chain(books.chain, body):
            raise _alarm("the hub acknowledged other bytes than were sent")
        await self._source.acked(reply)
        self._books = OutboxState(
            books.tenant, books.epoch, books.highest_seq, reply.last_seq, reply.chain, reply.generation
        )
        self._counts.batches += 1
        return reply

    def _hello(self, books: OutboxState) -> Hello:
        return Hello(
            protocol_min=PROTOCOL,
            protocol_max=PROTOCOL,
            schema_hash=schema_hash(),
            tenant=books.tenant,
            boot_id=self._boot_id,
            epoch=books.epoch,
            highest_seq=books.highest_seq,
            acked_seq=books.acked_seq,
            chain=books.chain,
            generation=books.generation,
        )

    async def _agree(self, books: OutboxState, welcome: Welcome) -> bool:
        """True when sending may begin; the table of docs/link.md."""
        verdict = welcome.verdict
        if verdict is HelloVerdict.CONTINUE:
            return True
        if verdict is HelloVerdict.ALARM:
            raise _alarm("the hub's digest differs from ours at the same seq")
        if verdict is HelloVerdict.AHEAD and await self._ack_was_lost(books, welcome):
            # The batch goes out again; the hub answers with the ack that it gave then.
            return True
        _log.warning("starting a new epoch", verdict=verdict.name, hub_cursor=welcome.cursor)
        if verdict is HelloVerdict.RESYNC:
            self._counts.resyncs += 1
            await self._source.resync(welcome.generation)
        else:
            self._counts.fences += 1
            await self._source.fenced(welcome.generation)
        return False

    async def _ack_was_lost(self, books: OutboxState, welcome: Welcome) -> bool:
        body = await self._source.sealed()
        return body is not None and next_chain(books.chain, body) == welcome.chain


def _welcome(reply: HubMessage) -> Welcome:
    if isinstance(reply, Refused):
        raise refusal(reply)
    if not isinstance(reply, Welcome):
        raise SecurityError(Code.MALFORMED, "not an answer to a hello", got=type(reply).__name__)
    if reply.protocol != PROTOCOL:
        raise TransientError(Code.UNSUPPORTED_VERSION, "the hub chose a protocol that we did not offer")
    return reply


def _alarm(message: str) -> IntegrityError:
    return IntegrityError(
        Code.CHAIN_MISMATCH, message, hint="Keep both data directories, compare them, then restore one side"
    )
