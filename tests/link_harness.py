"""A real hub in this process, and an edge whose store is a list: what the link's tests are made of."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from edge_agent.link import LinkTimings, OutboxState
from edge_agent.sync import LinkEndpoint, SyncLink
from hub.app import HubApp, HubPorts, HubSettings
from hub.auth import Edge, render_allow_list
from hub.regenerate import DraftGate, Rules
from shared.host.clock import SystemClock, SystemRng
from shared.host.keys import KeyPair, new_pair
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Kind, MemoryClass
from shared.ports import Generator
from shared.scope import EdgeName, TenantName
from shared.wire import NO_CHAIN, Ack, Batch, Created, Delta, decode_batch, encode_batch, next_chain

EDGE, TENANT = EdgeName("edge-1"), TenantName("tenant-1")
ANY_PORT = "tcp://127.0.0.1:*"
CLOCK = SystemClock()
FAST = LinkTimings(
    hello_s=2.0, ack_s=2.0, fetch_s=2.0, draft_s=5.0, ping_s=0.2, silent_s=1.0, backoff_min_s=0.02,
    backoff_max_s=0.2, refused_s=0.2,
)  # fmt: skip


def public_id(number: int) -> bytes:
    """An id that tells its number."""
    return number.to_bytes(16, "big")


def digest(text: str) -> bytes:
    """An entry's digest."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def created(seq: int, number: int, *, version: int = 1, text: str = "", original: bytes = b"") -> Created:
    """A new entry, or a new version of one."""
    return Created(
        seq, number, public_id(number), version, Kind.EPISODE, MemoryClass.NONE, 7,
        digest(text or str(number)), 0.5, 100, (), original,
    )  # fmt: skip


class ListOutbox:
    """BatchSource over a list: what an honest store does, with nothing but memory behind it."""

    def __init__(self, tenant: str = TENANT, epoch: bytes = b"e" * 16, batch_deltas: int = 4) -> None:
        self.tenant = tenant
        self.epoch = epoch
        self.deltas: list[Delta] = []
        self.entries: dict[int, Created] = {}
        self.acks: list[Ack] = []
        self.fences: list[str] = []
        self.acked_seq = 0
        self.chain = NO_CHAIN
        self.generation = 0
        self.seq = 0
        self.sent: bytes | None = None
        self.salt = 0
        self._batch_deltas = batch_deltas

    def put(self, make: Callable[[int], Delta]) -> Delta:
        """Queue the delta that `make` gives for the next seq."""
        self.seq += 1
        delta = make(self.seq)
        self.deltas.append(delta)
        if isinstance(delta, Created):
            self.entries[delta.number] = delta
        return delta

    def remember(self, number: int, text: str = "") -> None:
        """Queue a new entry."""
        self.put(lambda seq: created(seq, number, text=text))

    async def hello(self) -> OutboxState:
        return OutboxState(self.tenant, self.epoch, self.seq, self.acked_seq, self.chain, self.generation)

    async def sealed(self) -> bytes | None:
        if self.sent is None and self.deltas:
            deltas = tuple(self.deltas[: self._batch_deltas])
            self.sent = encode_batch(Batch(self.epoch, self.acked_seq, deltas[-1].seq, deltas))
        return self.sent

    async def acked(self, ack: Ack) -> None:
        assert self.sent is not None
        self.chain = next_chain(self.chain, self.sent)
        assert ack.chain == self.chain
        batch = decode_batch(self.sent)
        self.acked_seq = batch.last_seq
        for delta in batch.deltas:
            if delta.seq in ack.forgotten:
                self.entries.pop(delta.number, None)
        self.deltas = [delta for delta in self.deltas if delta.seq > self.acked_seq]
        self.sent = None
        self.generation = ack.generation
        self.acks.append(ack)

    async def fenced(self, hub_generation: int) -> None:
        self._restart("fenced", hub_generation)

    async def resync(self, hub_generation: int) -> None:
        self._restart("resync", hub_generation)

    def _restart(self, why: str, generation: int) -> None:
        self.fences.append(why)
        # Two copies never choose the same epoch: a real one is random.
        self.epoch = hashlib.sha256(self.epoch + str((self.salt, self.seq)).encode()).digest()[:16]
        self.acked_seq, self.chain, self.sent, self.generation = 0, NO_CHAIN, None, generation
        self.deltas = []
        for entry in list(self.entries.values()):
            self.put(lambda seq, entry=entry: replace(entry, seq=seq))  # type: ignore[misc]


@dataclass
class Hub:
    """A running hub and what a test needs of it."""

    app: HubApp
    keys: KeyPair
    directory: Path
    edges: dict[str, Edge]
    stop: anyio.Event = field(default_factory=anyio.Event)

    def write_edges(self) -> None:
        """Put the allow-list in force (within the reload period)."""
        text = render_allow_list(self.edges.values())
        (self.directory / "edges.toml").write_text(text, encoding="utf-8")

    def admit(self, name: str = EDGE, tenants: tuple[str, ...] = (TENANT,)) -> KeyPair:
        """A new key for an edge."""
        pair = new_pair()
        old = self.edges.get(name)
        keys = (*(old.keys if old else ()), pair.public)
        self.edges[name] = Edge(EdgeName(name), keys, tuple(TenantName(tenant) for tenant in tenants))
        self.write_edges()
        self.app._allowed.load()
        return pair


def make_hub(
    directory: Path,
    worker: WorkerThread,
    *,
    quota_bytes: int = 1 << 20,
    gates: dict[Kind, DraftGate] | None = None,
    generator: Generator | None = None,
    keys: KeyPair | None = None,
    edges: dict[str, Edge] | None = None,
    strict: bool = True,
) -> Hub:
    """A hub for a free loopback port, not started."""
    directory.mkdir(parents=True, exist_ok=True)
    pair, rules = keys or new_pair(), Rules(0.1, strict=strict)
    app = HubApp(
        HubSettings(ANY_PORT, directory, pair, directory / "edges.toml", quota_bytes, rules),
        HubPorts(CLOCK, worker, gates or {}, generator),
    )
    hub = Hub(app, pair, directory, edges or {})
    hub.write_edges()
    return hub


@asynccontextmanager
async def running_hub(directory: Path, **options: Any) -> AsyncIterator[Hub]:
    """A hub that has said ready; the options are make_hub's."""
    worker = WorkerThread("hub-store", Pulse("hub-store", CLOCK))
    hub = make_hub(directory, worker, **options)
    ready = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hub.app.run, hub.stop, lambda _: ready.set())
        try:
            with anyio.fail_after(10):
                await ready.wait()
            yield hub
        finally:
            hub.stop.set()
    await worker.aclose()


def link_to(
    hub: Hub, source: ListOutbox, pair: KeyPair, *, boot: bytes = b"b" * 16, timings: LinkTimings = FAST
) -> SyncLink:
    """A link towards a running hub."""
    endpoint = LinkEndpoint(hub.app.endpoint, pair, hub.keys.public)
    return SyncLink(source, endpoint, boot, CLOCK, SystemRng(), timings)


@asynccontextmanager
async def running_link(link: SyncLink) -> AsyncIterator[SyncLink]:
    """The link's own task, cancelled at the end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(link.run)
        try:
            yield link
        finally:
            tasks.cancel_scope.cancel()


async def until(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    """Wait for what another task does; fails after `limit_s`."""
    with anyio.fail_after(limit_s):
        while not condition():
            await anyio.sleep(0.01)
