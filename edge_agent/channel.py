"""One socket to the hub and its one reader. A channel that failed is closed, never used again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio
import zmq.asyncio

from edge_agent.link import LinkCounts
from shared import metrics
from shared.errors import Code, CrystalError, PermanentError, SecurityError, TransientError
from shared.metrics import Direction
from shared.ports import Clock
from shared.wire import (
    Archived,
    DraftAsk,
    DraftReply,
    EdgeMessage,
    Fetch,
    HubMessage,
    Ping,
    Pong,
    Refused,
    decode_from_hub,
    encode,
)

# After these the books must be compared again, or the hub's operator must act: the session is over.
_ENDING = frozenset(
    code.value
    for code in (
        Code.NO_SESSION,
        Code.GAP,
        Code.STALE_EPOCH,
        Code.CHAIN_MISMATCH,
        Code.FENCED,
        Code.UNKNOWN_KEY,
        Code.REVOKED_KEY,
        Code.FOREIGN_TENANT,
        Code.UNSUPPORTED_VERSION,
    )
)
# A sleep that took this much longer than asked for says that our own loop was held up.
_STALL_FACTOR = 1.5
Answer = Archived | DraftReply | Refused
T = TypeVar("T")
_PERMANENT = frozenset({Code.SOURCE_ABSENT, Code.NOT_FOUND})
_KNOWN_CODES = {code.value: code for code in Code}


class Channel:
    """Exchange (hello and batches, one at a time) and requests (fetch and draft, many) over one DEALER."""

    def __init__(
        self, socket: zmq.asyncio.Socket, clock: Clock, counts: LinkCounts, on_failure: Callable[[], None]
    ) -> None:
        self.failure: CrystalError | None = None
        self._socket = socket
        self._clock = clock
        self._counts = counts
        self._on_failure = on_failure
        self._heard_mono_ns = clock.mono_ns()
        self._exchange: asyncio.Future[HubMessage] | None = None
        self._requests: dict[int, asyncio.Future[Answer]] = {}

    async def read(self) -> None:
        """Give every message to whom it is for, until the session ends. Never cancelled for a time-out."""
        while self.failure is None:
            frames = await self._socket.recv_multipart()
            self._heard_mono_ns = self._clock.mono_ns()
            received_bytes = sum(map(len, frames))
            self._counts.down_bytes += received_bytes
            metrics.LINK_BYTES.labels(direction=Direction.DOWN.value).inc(received_bytes)
            try:
                if len(frames) != 1:
                    raise SecurityError(Code.MALFORMED, "a message has one frame", frames=len(frames))
                self._deliver(decode_from_hub(frames[0]))
            except SecurityError as error:
                self.fail(error)

    async def keep_alive(self, tenant: str, ping_s: float, silent_s: float) -> None:
        """Ping, and fail the channel when nothing has been heard for too long."""
        while self.failure is None:
            before_mono_ns = self._clock.mono_ns()
            await self._clock.sleep(ping_s)
            now_mono_ns = self._clock.mono_ns()
            if now_mono_ns - before_mono_ns > _STALL_FACTOR * ping_s * 1e9:
                # It was us who stood still: what the hub said meanwhile is not read yet.
                self._heard_mono_ns = now_mono_ns
            if now_mono_ns - self._heard_mono_ns > silent_s * 1e9:
                self.fail(TransientError(Code.HUB_UNAVAILABLE, "the hub fell silent"))
                return
            with anyio.move_on_after(ping_s):
                await self._send(Ping(tenant))

    async def exchange(self, message: EdgeMessage, timeout_s: float) -> HubMessage:
        """Send a hello or a batch and wait for what answers it."""
        self.check()
        self._exchange = asyncio.get_running_loop().create_future()
        try:
            return await self._answered(message, self._exchange, timeout_s)
        finally:
            self._exchange = None

    async def request(self, message: Fetch | DraftAsk, timeout_s: float) -> Archived | DraftReply:
        """Send a question with its own number and wait for its answer; a refusal is raised."""
        self.check()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._requests[message.request] = future
        try:
            reply = await self._answered(message, future, timeout_s)
        finally:
            del self._requests[message.request]
        if isinstance(reply, Refused):
            raise refusal(reply)
        return reply

    def check(self) -> None:
        """Raise what ended the session, if it has ended."""
        if self.failure is not None:
            raise self.failure

    def fail(self, error: CrystalError) -> None:
        """End the session: everybody who waits hears why."""
        if self.failure is not None:
            return
        self.failure = error
        for future in (self._exchange, *self._requests.values()):
            if future is not None and not future.done():
                future.set_exception(error)
        self._on_failure()

    def close(self) -> None:
        """Close the socket; who still waits is told."""
        self.fail(TransientError(Code.HUB_UNAVAILABLE, "the link was closed"))
        self._socket.close()

    async def _send(self, message: EdgeMessage) -> None:
        frame = encode(message)
        await self._socket.send(frame)
        self._counts.up_bytes += len(frame)
        metrics.LINK_BYTES.labels(direction=Direction.UP.value).inc(len(frame))

    async def _answered(self, message: EdgeMessage, future: asyncio.Future[T], timeout_s: float) -> T:
        sent = False
        with anyio.move_on_after(timeout_s):
            # Waits while there is no connection: nothing queues towards an absent hub.
            await self._send(message)
            sent = True
            return await future
        if sent:
            raise TransientError(Code.TIMED_OUT, "the hub did not answer in time", timeout_s=timeout_s)
        raise TransientError(
            Code.HUB_UNAVAILABLE,
            "no connection to the hub",
            hint="Is the hub running, is the endpoint right, is our public key in its allow-list?",
        )

    def _deliver(self, message: HubMessage) -> None:
        if isinstance(message, Pong):
            return
        if isinstance(message, Refused) and message.code in _ENDING:
            self.fail(refusal(message))
            return
        if isinstance(message, (Archived, DraftReply, Refused)) and message.request:
            _settle(self._requests.get(message.request), message)
        else:
            _settle(self._exchange, message)


def _settle(future: asyncio.Future[T] | None, message: T) -> None:
    """Nobody waits for an answer that comes too late; what it told is asked for again."""
    if future is not None and not future.done():
        future.set_result(message)


def refusal(refused: Refused) -> CrystalError:
    """The hub's refusal as our error; only some are worth another attempt."""
    code = _KNOWN_CODES.get(refused.code, Code.HUB_UNAVAILABLE)
    facts = {"hub_says": refused.message}
    if code is Code.FENCED:
        return SecurityError(code, "another process speaks for this edge", **facts)
    if code in _PERMANENT:
        return PermanentError(code, "the hub does not have it", **facts)
    return TransientError(code, "the hub refused", **facts)
