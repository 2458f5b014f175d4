"""The edge daemon, given its ports: opens the store, keeps the door, the link and the idle loop running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio

from edge_agent import api
from edge_agent.board import Board
from edge_agent.drafting import Drafting
from edge_agent.elastic import Elastic, ElasticOptions
from edge_agent.embedding import Embedding
from edge_agent.entries import ArchiveMode
from edge_agent.idle import Idle, IdleTimings
from edge_agent.link import LinkStatus
from edge_agent.monitor import Monitor
from edge_agent.opening import StoreOptions
from edge_agent.outbound import StoreSource
from edge_agent.parts import Parts
from edge_agent.recovery import Recovery, RecoveryLimits
from edge_agent.reporting import Identity, Reporting
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.store import Store
from edge_agent.sync import LinkEndpoint, SyncLink
from edge_agent.valuation import Valuation
from edge_agent.verbs import Verbs
from shared.config import EdgeConfig
from shared.host.files import lock_directory
from shared.host.log import get_logger
from shared.host.service import Supervisor
from shared.host.worker import WorkerThread
from shared.memory.model import LADDERS, EvictionMode, Kind
from shared.memory.value import ValueMode
from shared.ports import Admission, Clock, Embedder, IdSource, Retention, Rng, RungCodec

_BOOT_ID_BYTES = 16
_log = get_logger("edge")


@dataclass(frozen=True)
class EdgePorts:
    """What the composition root hands over. endpoint None = no hub; retention None = CrystalMem itself."""

    clock: Clock
    rng: Rng
    ids: IdSource
    codecs: Mapping[Kind, RungCodec]
    admission: Admission
    retention: Retention | None
    endpoint: LinkEndpoint | None
    embedder: Embedder | None = None
    no_embedder: str = "no embedder is configured"
    """Why there is none, and what to do about it."""


class _Worker:
    """A worker that can be ended before the store is closed under it."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._work = work
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()

    async def run(self) -> None:
        """Work until `end`; a failure leaves as it is."""
        try:
            with self._scope:
                await self._work()
        finally:
            self._done.set()

    async def end(self) -> None:
        """Cancel, and wait until the store is no longer used."""
        self._scope.cancel()
        await self._done.wait()


class EdgeApp:
    """One tenant's daemon."""

    def __init__(self, config: EdgeConfig, ports: EdgePorts, version: str) -> None:
        self._config = config
        self._ports = ports
        self._version = version

    async def run(self, supervisor: Supervisor) -> None:
        """Serve until the stop; READY is said once an interrupted sweep is finished."""
        directory = self._config.directory
        (directory / "memory").mkdir(parents=True, exist_ok=True, mode=0o700)
        with lock_directory(directory):
            thread = WorkerThread("store", supervisor.pulse("store"))
            try:
                parts = await thread.run(self._open, thread, anyio.Lock())
                embedding = self._embedding(parts, supervisor)
                try:
                    await self._serve(supervisor, parts, embedding)
                finally:
                    await embedding.aclose()
                    await thread.run(_close, parts)
            finally:
                await thread.aclose()

    async def _serve(self, supervisor: Supervisor, parts: Parts, embedding: Embedding) -> None:
        config, ports = self._config, self._ports
        link = self._link(parts)
        elastic = Elastic(parts, link, self._elastic_options())
        strict = config.memory.gate == "strict"
        board = Board(config.ondevice, ports.clock)
        drafting = Drafting(
            parts,
            link,
            rho=config.memory.rho,
            strict=strict,
            board=board.generator,
            accept_judge=config.memory.accept_judge,
        )
        limits = RecoveryLimits(
            rho=config.memory.rho,
            archive_bytes_per_stage=config.archive.bytes_per_stage or float("inf"),
            rises=ports.retention is None,
        )
        recovery = Recovery(parts, link, drafting, limits)
        if limits.rises:
            board.level(parts, elastic, config.memory.rho)
        idle = Idle(parts, elastic, recovery, link, self._idle_timings(), board, embedding)
        reporting = Reporting(parts, self._identity(), _status_of(link), board.view, embedding.view)
        monitor = Monitor(parts.store, parts.retrieval, ports.retention)
        verbs = Verbs(
            parts, monitor, elastic, recovery, idle, reporting, ports.admission, ports.ids, embedding
        )
        workers: list[_Worker] = []
        try:
            async with api.serve(verbs, config.socket_path, config.door):
                if link is not None:
                    workers.append(_start(supervisor, _Worker("link", link.run)))
                async with parts.lock:
                    # Recalls are answered meanwhile and say over_budget.
                    await elastic.resume()
                workers.append(_start(supervisor, _Worker("ondevice", board.model.run)))
                workers.append(_start(supervisor, _Worker("idle", idle.run)))
                supervisor.ready(f"tenant {config.tenant}, {len(parts.store)} entries, {config.socket_path}")
                await supervisor.stop.wait()
        finally:
            for worker in reversed(workers):
                await worker.end()
            await board.model.aclose()

    def _open(self, thread: WorkerThread, lock: anyio.Lock) -> Parts:
        config, ports = self._config, self._ports
        options = StoreOptions(
            tenant=config.tenant,
            ladder=LADDERS[config.memory.ladder],
            provision_bytes=config.memory.provision_bytes,
            archive=self._archive_mode(),
            pack_level=config.memory.pack_level,
            embedder=ports.embedder.signature if ports.embedder is not None else None,
        )
        store = Store.open(
            config.directory / "memory", options, codecs=ports.codecs, clock=ports.clock, rng=ports.rng
        )
        mode = ValueMode.PAPER if config.memory.valuation == "paper" else ValueMode.PRODUCT
        valuation = Valuation(store, mode, config.memory.coupling)
        state = State.open(config.directory / "state")
        return Parts(store, Retrieval(store), valuation, state, thread, ports.clock, lock)

    def _embedding(self, parts: Parts, supervisor: Supervisor) -> Embedding:
        return Embedding(
            parts,
            WorkerThread("embedder", supervisor.pulse("embedder")),
            self._ports.embedder,
            absence=self._ports.no_embedder,
            query_timeout_s=self._config.embedder.query_timeout_s,
        )

    def _link(self, parts: Parts) -> SyncLink | None:
        ports = self._ports
        if ports.endpoint is None:
            return None
        source = StoreSource(parts)
        boot_id = ports.rng.bytes(_BOOT_ID_BYTES)
        return SyncLink(source, ports.endpoint, boot_id, ports.clock, ports.rng)

    def _archive_mode(self) -> ArchiveMode | None:
        return ArchiveMode(self._config.archive.mode) if self._ports.endpoint is not None else None

    def _elastic_options(self) -> ElasticOptions:
        config = self._config
        return ElasticOptions(
            mode=EvictionMode(config.memory.eviction),
            retention=self._ports.retention,
            archive=self._archive_mode(),
            grace_s=config.archive.grace_s,
        )

    def _idle_timings(self) -> IdleTimings:
        idle = self._config.idle
        return IdleTimings(idle.window_s, idle.patience_s, idle.pace_s, self._config.memory.stage_max_s)

    def _identity(self) -> Identity:
        config = self._config
        return Identity(
            version=self._version,
            policy=config.memory.policy,
            archive_mode=config.archive.mode if config.link.endpoint else "none",
            gate=config.memory.gate,
            endpoint=config.link.endpoint,
            board_regenerates=config.ondevice.regenerate,
        )


def _status_of(link: SyncLink | None) -> Callable[[], LinkStatus | None]:
    def status() -> LinkStatus | None:
        return None if link is None else link.status()

    return status


def _start(supervisor: Supervisor, worker: _Worker) -> _Worker:
    supervisor.start(worker.name, worker.run)
    return worker


def _close(parts: Parts) -> None:
    parts.retrieval.close()
    parts.state.close()
    parts.store.close()
