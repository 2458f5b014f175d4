"""The ROUTER loop: receive, authenticate every message, decode, dispatch. No claim of a peer is believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import zmq
import zmq.asyncio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from hub.auth import AllowListFile, Edge
from hub.counters import Counters
from hub.regenerate import Regenerator
from hub.sessions import Rivalry, Session, Sessions
from hub.store import Standing
from hub.stores import Stores
from shared.errors import Code, CrystalError, SecurityError, TransientError
from shared.host.log import clean, get_logger
from shared.host.worker import WorkerThread
from shared.metrics import BatchResult
from shared.ports import Clock
from shared.wire import (
    PROTOCOL,
    BatchMessage,
    DraftAsk,
    DraftFailure,
    DraftReply,
    EdgeMessage,
    Fetch,
    Hello,
    HelloVerdict,
    HubMessage,
    Ping,
    Pong,
    Refused,
    Welcome,
    decode_from_edge,
    encode,
)

# Drafts that fly or wait for one that flies. More means an edge that asks without waiting.
MAX_ASKS = 64
# Messages of up to 4 MiB that may wait for the store; then reading stops, and libzmq's own limits hold.
MAX_WAITING = 16
_OPEN_VERDICTS = frozenset({HelloVerdict.CONTINUE, HelloVerdict.AHEAD})
_log = get_logger("hub.router")


@dataclass(frozen=True)
class _Work:
    edge: Edge
    routing_id: bytes
    message: EdgeMessage


class Router:
    """One socket, one reader. Writes are applied in the order in which they are read."""

    def __init__(
        self,
        socket: zmq.asyncio.Socket,
        allowed: AllowListFile,
        stores: Stores,
        worker: WorkerThread,
        regenerator: Regenerator,
        clock: Clock,
        counters: Counters,
    ) -> None:
        self.sessions = Sessions(clock)
        self._socket = socket
        self._allowed = allowed
        self._stores = stores
        self._worker = worker
        self._regenerator = regenerator
        self._counters = counters
        self._asks = 0

    async def run(self) -> None:
        """Serve until cancelled. No time-out ever cancels the receive: that can lose a message."""
        put, get = anyio.create_memory_object_stream[_Work](MAX_WAITING)
        async with anyio.create_task_group() as tasks, put, get:
            tasks.start_soon(self._work, get, tasks)
            while True:
                await self._receive(await self._socket.recv_multipart(copy=False), put)

    async def _receive(self, frames: Sequence[zmq.Frame], put: MemoryObjectSendStream[_Work]) -> None:
        """Reading goes on while the store works, or every edge would take one slow commit for a dead hub."""
        routing_id = bytes(frames[0].buffer)
        try:
            edge = self._edge(frames)
            message = decode_from_edge(_payload(frames))
            if message.tenant not in edge.tenants:
                raise SecurityError(Code.FOREIGN_TENANT, "this edge does not own the tenant", edge=edge.name)
        except SecurityError as error:
            await self._refuse(routing_id, 0, error)
            return
        if isinstance(message, Ping) and self.sessions.heard(edge.name, message.tenant, routing_id):
            await self._send(routing_id, Pong())
        else:
            await put.send(_Work(edge, routing_id, message))

    async def _work(self, get: MemoryObjectReceiveStream[_Work], tasks: TaskGroup) -> None:
        """One after the other, in the order of arrival."""
        async for work in get:
            try:
                await self._dispatch(work.edge, work.routing_id, work.message, tasks)
            except CrystalError as error:
                if isinstance(work.message, BatchMessage):
                    self._counters.batch(BatchResult.REFUSED)
                request = work.message.request if isinstance(work.message, (Fetch, DraftAsk)) else 0
                await self._refuse(work.routing_id, request, error)

    async def _refuse(self, routing_id: bytes, request: int, error: CrystalError) -> None:
        self._counters.refuse(error.code)
        _log.warning("refused", code=error.code.value, reason=clean(str(error)))
        await self._send(routing_id, Refused(request, error.code.value, clean(error.message)))

    def _edge(self, frames: Sequence[zmq.Frame]) -> Edge:
        """The edge that the connection's key names now: revocation counts from the next message on."""
        # A peer that picks its routing id could take another's place; libzmq's own start with a zero byte.
        if not bytes(frames[0].buffer).startswith(b"\0"):
            raise SecurityError(Code.BAD_ID, "a peer chose its own routing id")
        try:
            user_id = frames[-1].get("User-Id")
        except zmq.ZMQError:
            raise SecurityError(Code.UNKNOWN_KEY, "a message without a key") from None
        edge = self._allowed.current.edge_of(str(user_id).encode())
        if edge is None:
            raise SecurityError(Code.REVOKED_KEY, "this key is no longer listed")
        return edge

    async def _dispatch(self, edge: Edge, routing_id: bytes, message: EdgeMessage, tasks: TaskGroup) -> None:
        if isinstance(message, Hello):
            await self._hello(edge, routing_id, message)
            return
        if self.sessions.heard(edge.name, message.tenant, routing_id) is None:
            raise TransientError(Code.NO_SESSION, "say hello first")
        if isinstance(message, BatchMessage):
            await self._batch(edge, routing_id, message)
        elif isinstance(message, Fetch):
            self._counters.fetches += 1
            await self._send(routing_id, await self._worker.run(self._stores.fetch, edge.name, message))
        elif isinstance(message, DraftAsk):
            self._counters.drafts += 1
            await self._ask(edge, routing_id, message, tasks)

    async def _hello(self, edge: Edge, routing_id: bytes, hello: Hello) -> None:
        if not hello.protocol_min <= PROTOCOL <= hello.protocol_max:
            raise SecurityError(Code.UNSUPPORTED_VERSION, "no common protocol", ours=PROTOCOL)
        rival = await self._rival(edge, hello)
        if rival is Rivalry.CLONE:
            await self._fence_both(edge, hello)
        standing = await self._worker.run(self._stores.hello, edge.name, hello)
        if rival is Rivalry.OLDER:
            if standing.verdict not in _OPEN_VERDICTS:
                await self._fence_both(edge, hello)
            await self._tell_rival(edge, hello)
        self._note(edge, standing)
        self.sessions.open(edge.name, hello.tenant, routing_id, hello.boot_id, hello.epoch)
        await self._send(
            routing_id,
            Welcome(
                PROTOCOL,
                standing.generation,
                standing.cursor,
                standing.chain,
                self._regenerator.generates,
                standing.verdict,
            ),
        )

    def _note(self, edge: Edge, standing: Standing) -> None:
        self._counters.hellos[standing.verdict.name.lower()] += 1
        if standing.retired:
            self._counters.clones += 1
        if standing.verdict not in _OPEN_VERDICTS:
            _log.warning(
                "an edge's books differ",
                edge=edge.name,
                verdict=standing.verdict.name,
                old_or_cloned_copy=standing.retired,
            )

    async def _rival(self, edge: Edge, hello: Hello) -> Rivalry:
        """A rival counts only while its connection stands: a killed edge may be replaced at once."""
        rivalry = self.sessions.rivalry(edge.name, hello.tenant, hello.boot_id, hello.epoch)
        session = self.sessions.of(edge.name, hello.tenant)
        if rivalry is Rivalry.NONE or session is None or not await self._send(session.routing_id, Pong()):
            return Rivalry.NONE
        return rivalry

    async def _tell_rival(self, edge: Edge, hello: Hello) -> None:
        session: Session | None = self.sessions.of(edge.name, hello.tenant)
        if session is not None:
            refused = Refused(0, Code.FENCED.value, "another process speaks for this edge now")
            await self._send(session.routing_id, refused)
            self.sessions.drop(edge.name, hello.tenant)

    async def _fence_both(self, edge: Edge, hello: Hello) -> None:
        self._counters.clones += 1
        _log.error("two copies of one edge are live: a cloned disk?", edge=edge.name, tenant=hello.tenant)
        await self._tell_rival(edge, hello)
        raise SecurityError(Code.FENCED, "two copies of this edge are live", edge=edge.name)

    async def _batch(self, edge: Edge, routing_id: bytes, message: BatchMessage) -> None:
        applied = await self._worker.run(self._stores.apply, edge.name, message)
        self._counters.batch(BatchResult.REPLAYED if applied.replayed else BatchResult.APPLIED)
        self._counters.batches += 1
        self._counters.deltas += applied.deltas
        self._counters.replayed += applied.replayed
        self._counters.skipped += applied.skipped
        if not applied.replayed:
            self._counters.not_archived += len(applied.ack.not_archived)
        await self._send(routing_id, applied.ack)

    async def _ask(self, edge: Edge, routing_id: bytes, ask: DraftAsk, tasks: TaskGroup) -> None:
        if self._asks >= MAX_ASKS:
            await self._send(routing_id, DraftReply(ask.request, "", "", 0, DraftFailure.BUSY.value))
            return
        self._asks += 1
        tasks.start_soon(self._draft, edge.name, routing_id, ask)

    async def _draft(self, edge: str, routing_id: bytes, ask: DraftAsk) -> None:
        try:
            await self._send(routing_id, await self._regenerator.draft(edge, ask))
        except CrystalError as error:
            await self._refuse(routing_id, ask.request, error)
        finally:
            self._asks -= 1

    async def _send(self, routing_id: bytes, message: HubMessage) -> bool:
        """False where the peer is gone or does not read: the edge asks again, nothing is queued for it."""
        try:
            await self._socket.send_multipart([routing_id, encode(message)], flags=zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self._counters.unsent += 1
            return False
        return True


def _payload(frames: Sequence[zmq.Frame]) -> bytes:
    if len(frames) != 2:
        raise SecurityError(Code.MALFORMED, "a message has one frame", frames=len(frames))
    return bytes(frames[1].buffer)
