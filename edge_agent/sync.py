"""The link: connect, agree with the hub, send what the outbox seals, fetch and ask, reconnect."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import anyio
import zmq.asyncio
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from edge_agent.channel import Channel
from edge_agent.link import (
    BatchSource,
    LinkCounts,
    LinkStatus,
    LinkTimings,
    OutboxState,
    Phase,
    transition,
)
from edge_agent.session import Session
from shared.errors import Code, CrystalError, IntegrityError, SecurityError, TransientError
from shared.host import sockets
from shared.host.keys import KeyPair
from shared.host.log import clean, get_logger
from shared.ports import ArchivedEntry, Clock, Draft, DraftRequest, DroppedLayer, Rng
from shared.wire import Archived, DraftAsk, DraftReply, Fetch, Welcome

# A fetch changes nothing: one lost reply may be asked for again at once.
_FETCH_ATTEMPTS = 2
_MAX_REQUEST = 2**32 - 1
_HUB_OPERATOR_MUST_ACT = frozenset(
    {Code.UNKNOWN_KEY, Code.REVOKED_KEY, Code.FOREIGN_TENANT, Code.UNSUPPORTED_VERSION}
)
_log = get_logger("link")


@dataclass(frozen=True)
class LinkEndpoint:
    """Where the hub is, who we are, and the key by which we know it."""

    address: str
    keys: KeyPair
    hub_key: bytes


class SyncLink:
    """ports.Link, and what drives the outbox."""

    def __init__(
        self,
        source: BatchSource,
        endpoint: LinkEndpoint,
        boot_id: bytes,
        clock: Clock,
        rng: Rng,
        timings: LinkTimings | None = None,
    ) -> None:
        self.counts = LinkCounts()
        self._source = source
        self._endpoint = endpoint
        self._boot_id = boot_id
        self._clock = clock
        self._rng = rng
        self._timings = timings or LinkTimings()
        self._phase = Phase.OFFLINE
        self._problem: CrystalError | None = None
        self._channel: Channel | None = None
        self._books: OutboxState | None = None
        self._welcome: Welcome | None = None
        self._acked_seq = 0
        self._paused = False
        self._attempt = 0
        self._request = 0
        self._sent: bytes | None = None
        self._wake = anyio.Event()
        self._flushing: list[asyncio.Future[bool]] = []

    # --- ports.Link ------------------------------------------------------------------------------------

    @property
    def up(self) -> bool:
        """True while the hub answers."""
        return self._phase.up

    @property
    def generates(self) -> bool:
        """True while a hub with a model endpoint answers."""
        return self.up and self._welcome is not None and self._welcome.generates

    async def fetch(self, number: int, version: int) -> ArchivedEntry:
        """What the archive holds of an entry; PermanentError(SOURCE_ABSENT) where that is nothing."""
        attempts = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(_FETCH_ATTEMPTS),
            wait=wait_random_exponential(
                multiplier=self._timings.backoff_min_s, max=self._timings.backoff_max_s
            ),
            sleep=self._clock.sleep,
            reraise=True,
        )
        return await attempts(self._fetch, number, version)

    async def draft(self, request: DraftRequest) -> Draft:
        """One draft, asked for once: every attempt is charged, so another is the planner's choice."""
        channel, tenant = self._live()
        reply = await channel.request(_ask(tenant, self._next_request(), request), self._timings.draft_s)
        if not isinstance(reply, DraftReply):
            raise SecurityError(Code.MALFORMED, "the hub answered a draft request with something else")
        return Draft(reply.text, reply.model, reply.tokens, reply.failure, judged=reply.judged)

    # --- for the daemon -----------------------------------------------------------------------------------

    def wake(self) -> None:
        """The outbox has something new."""
        self._wake.set()

    def pause(self) -> None:
        """Seal nothing until resume(): a sweep is writing. What is in flight is still settled."""
        self._paused = True

    def resume(self) -> None:
        """Go on sending."""
        self._paused = False
        self.wake()

    async def flush(self, timeout_s: float) -> bool:
        """True once everything queued before this call is acked; False when the link is down or too slow."""
        if not self.up or self._paused:
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._flushing.append(future)
        self.wake()
        with anyio.move_on_after(timeout_s):
            return await future
        return False

    def status(self) -> LinkStatus:
        """For `status` and the metrics."""
        problem = None if self.up else self._problem
        return LinkStatus(
            phase=self._phase.value,
            paused=self._paused,
            generates=self.generates,
            code=problem.code.value if problem else "",
            hint=(problem.hint or problem.message) if problem else "",
            acked_seq=self._acked_seq,
            hub_generation=self._welcome.generation if self._welcome else 0,
            batches=self.counts.batches,
            resent=self.counts.resent,
            fences=self.counts.fences,
            resyncs=self.counts.resyncs,
            link_up_bytes=self.counts.up_bytes,
            link_down_bytes=self.counts.down_bytes,
        )

    async def run(self) -> None:
        """Keep the link up until cancelled."""
        context = zmq.asyncio.Context()
        try:
            while True:
                self._move(Phase.CONNECTING)
                self._problem = await self._session(context)
                self._move(_phase_after(self._problem))
                _log.warning("the link is down", phase=self._phase.value, reason=clean(str(self._problem)))
                if self._phase is not Phase.BACKOFF:
                    await anyio.sleep_forever()
                await self._clock.sleep(self._backoff_s(self._problem))
        finally:
            self._move(Phase.OFFLINE)
            context.term()

    # --- one session --------------------------------------------------------------------------------------

    async def _session(self, context: zmq.asyncio.Context) -> CrystalError:
        """Everything on one socket, until something ends it."""
        endpoint, timings = self._endpoint, self._timings
        socket = sockets.dealer(context, endpoint.address, endpoint.keys, endpoint.hub_key)
        channel = Channel(socket, self._clock, self.counts, self.wake)
        session = Session(channel, self._source, self._boot_id, timings, self.counts)
        problem: CrystalError | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(channel.read)
                try:
                    self._books, self._welcome = await session.greet()
                    tasks.start_soon(channel.keep_alive, self._books.tenant, timings.ping_s, timings.silent_s)
                    self._channel, self._acked_seq = channel, self._books.acked_seq
                    self._move(Phase.READY)
                    await self._send_all(session, channel)
                except CrystalError as error:
                    # Caught here: a task group would wrap it.
                    problem = error
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            self._channel = None
            channel.close()
            self._release()
        return problem or TransientError(Code.HUB_UNAVAILABLE, "the session ended")

    async def _send_all(self, session: Session, channel: Channel) -> None:
        """Send while there is something to send; ends by the error that ends the session."""
        while True:
            self._wake = anyio.Event()
            flushing, self._flushing = self._flushing, []
            channel.check()
            body = None if self._paused else await self._source.sealed()
            if body is not None:
                self._flushing[:0] = flushing
                await self._send(session, body)
                continue
            self._attempt = 0
            for future in flushing:
                _settle(future, not self._paused)
            await self._wake.wait()

    async def _send(self, session: Session, body: bytes) -> None:
        self.counts.resent += body == self._sent
        self._sent = body
        self._move(Phase.SENDING)
        ack = await session.send(body)
        self._sent, self._acked_seq, self._attempt = None, ack.last_seq, 0
        self._move(Phase.READY)

    def _release(self) -> None:
        for future in self._flushing:
            _settle(future, False)
        self._flushing = []

    def _backoff_s(self, problem: CrystalError) -> float:
        """Doubling from a quarter of a second, half of it random: fifty edges must not come back at once."""
        timings = self._timings
        if problem.code in _HUB_OPERATOR_MUST_ACT:
            limit_s = timings.refused_s
        else:
            limit_s = min(timings.backoff_max_s, timings.backoff_min_s * 2**self._attempt)
        self._attempt = min(self._attempt + 1, 16)
        return limit_s * (0.5 + 0.5 * self._rng.random())

    def _move(self, to: Phase) -> None:
        self._phase = transition(self._phase, to)

    # --- requests -------------------------------------------------------------------------------------------

    async def _fetch(self, number: int, version: int) -> ArchivedEntry:
        channel, tenant = self._live()
        ask = Fetch(tenant, self._next_request(), number, version)
        reply = await channel.request(ask, self._timings.fetch_s)
        if not isinstance(reply, Archived):
            raise SecurityError(Code.MALFORMED, "the hub answered a fetch with something else")
        return _archived(reply)

    def _live(self) -> tuple[Channel, str]:
        if self._channel is None or self._books is None:
            hint = "Look at `crystalmem status`: it says why the link is down"
            raise TransientError(Code.HUB_UNAVAILABLE, "the hub does not answer", hint=hint)
        return self._channel, self._books.tenant

    def _next_request(self) -> int:
        self._request = self._request % _MAX_REQUEST + 1
        return self._request


def _phase_after(problem: CrystalError) -> Phase:
    if isinstance(problem, IntegrityError):
        return Phase.ALARMED
    if isinstance(problem, SecurityError) and problem.code is Code.FENCED:
        return Phase.STOPPED
    return Phase.BACKOFF


def _settle(future: asyncio.Future[bool], flushed: bool) -> None:
    if not future.done():
        future.set_result(flushed)


def _archived(reply: Archived) -> ArchivedEntry:
    return ArchivedEntry(
        number=reply.number,
        public_id=reply.public_id,
        version=reply.version,
        kind=reply.kind,
        memory_class=reply.memory_class,
        created_wall_ns=reply.created_wall_ns,
        digest=reply.digest,
        links=reply.links,
        layers=tuple(DroppedLayer(layer.rung_above, layer.payload) for layer in reply.layers),
        levelling=reply.levelling,
        original=reply.original,
    )


def _ask(tenant: str, number: int, request: DraftRequest) -> DraftAsk:
    return DraftAsk(
        tenant=tenant,
        request=number,
        number=request.number,
        version=request.version,
        base_digest=request.base_digest,
        origin=request.origin,
        target=request.target,
        kind=request.kind,
        record=request.record,
        residue=request.residue,
        invariants=request.invariants,
        neighbours=request.neighbours,
        max_tokens=request.max_tokens,
        stage=request.stage,
        serving_tokens=request.serving_tokens,
        cap_tokens=request.cap_tokens,
    )
