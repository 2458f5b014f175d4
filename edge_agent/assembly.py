"""One tenant's passes, put together: the same for the daemon and for whoever drives them in process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio

from edge_agent.board import Board
from edge_agent.distill import PlainDistiller
from edge_agent.drafting import Drafting, LocalGenerator
from edge_agent.elastic import Elastic, ElasticOptions
from edge_agent.embedding import Embedding
from edge_agent.entries import ArchiveMode
from edge_agent.idle import Idle, IdleTimings
from edge_agent.link import LinkStatus
from edge_agent.monitor import Monitor
from edge_agent.opening import StoreOptions
from edge_agent.outbound import StoreSource
from edge_agent.parts import Parts
from edge_agent.plane import DiskMeter
from edge_agent.recovery import Recovery, RecoveryLimits
from edge_agent.reporting import Identity, Reporting
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.store import Store
from edge_agent.sync import LinkEndpoint, SyncLink
from edge_agent.valuation import Signal, Valuation
from edge_agent.verbs import Verbs
from shared.config import EdgeConfig
from shared.host.files import directory_bytes
from shared.host.worker import WorkerThread
from shared.memory import crystallize
from shared.memory.crystallize import Planner
from shared.memory.model import LADDERS, EvictionMode, Kind
from shared.memory.text_codec import TextCodec
from shared.memory.value import ValueMode
from shared.ports import Admission, AdmissionDecision, Clock, Embedder, IdSource, Retention, Rng, RungCodec

BOOT_ID_BYTES = 16
# Motion has a codec of its own; every other kind is text.
TEXT_KINDS = tuple(kind for kind in Kind if kind is not Kind.MOTION)


class WriteAll:
    """ports.Admission: whatever is remembered is written."""

    def decide(self, text: str, kind: Kind) -> AdmissionDecision:
        """Write."""
        return AdmissionDecision("write")


@dataclass(frozen=True)
class Design:
    """The design choices that a comparison may replace; as it stands it is CrystalMem.

    planner: which moves a squeeze makes (Eq. 7). signal: where influence comes from (Eq. 8).
    generator: a model at the edge itself; None = the board's, where one is configured.
    disk_meter: what the physical account is held to; a comparison in logical bytes alone measures none.
    """

    planner: Planner = crystallize.plan
    signal: Signal = Store.value_columns
    generator: LocalGenerator | None = None
    disk_meter: DiskMeter = directory_bytes


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
    design: Design = field(default_factory=Design)


@dataclass(frozen=True)
class Passes:
    """Everything that works on one tenant's store, behind the verbs of the door."""

    parts: Parts
    link: SyncLink | None
    board: Board
    elastic: Elastic
    recovery: Recovery
    idle: Idle
    verbs: Verbs


def text_codecs(codec: RungCodec | None = None) -> Mapping[Kind, RungCodec]:
    """One codec for every kind that is text."""
    return dict.fromkeys(TEXT_KINDS, codec or TextCodec(PlainDistiller()))


def open_parts(config: EdgeConfig, ports: EdgePorts, thread: WorkerThread, lock: anyio.Lock) -> Parts:
    """The store and its books in the configured directory. On the store's thread."""
    options = StoreOptions(
        tenant=config.tenant,
        ladder=LADDERS[config.memory.ladder],
        provision_bytes=config.memory.provision_bytes,
        archive=_archive_mode(config, ports),
        pack_level=config.memory.pack_level,
        embedder=ports.embedder.signature if ports.embedder is not None else None,
        disk_meter=ports.design.disk_meter,
    )
    store = Store.open(
        config.directory / "memory", options, codecs=ports.codecs, clock=ports.clock, rng=ports.rng
    )
    valuation = Valuation(store, _value_mode(config), config.memory.coupling, ports.design.signal)
    state = State.open(config.directory / "state")
    return Parts(store, Retrieval(store), valuation, state, thread, ports.clock, lock)


def close_parts(parts: Parts) -> None:
    """Close every file. On the store's thread."""
    parts.retrieval.close()
    parts.state.close()
    parts.store.close()


def make_link(parts: Parts, ports: EdgePorts) -> SyncLink | None:
    """The link to the configured hub; None without one."""
    if ports.endpoint is None:
        return None
    boot_id = ports.rng.bytes(BOOT_ID_BYTES)
    return SyncLink(StoreSource(parts), ports.endpoint, boot_id, ports.clock, ports.rng)


def compose(
    config: EdgeConfig,
    ports: EdgePorts,
    parts: Parts,
    link: SyncLink | None,
    embedding: Embedding,
    version: str,
) -> Passes:
    """The passes over open parts. Nothing runs yet: `link.run`, `board.model.run`, `idle.run` are loops."""
    elastic = Elastic(parts, link, _elastic_options(config, ports))
    board = Board(config.ondevice, ports.clock)
    drafting = Drafting(
        parts,
        link,
        rho=config.memory.rho,
        strict=config.memory.gate == "strict",
        board=ports.design.generator or board.generator,
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
    idle = Idle(parts, elastic, recovery, link, _idle_timings(config), board, embedding)
    identity = _identity(config, version)
    reporting = Reporting(parts, identity, _status_of(link), board.view, embedding.view)
    monitor = Monitor(parts.store, parts.retrieval, ports.retention, _value_mode(config))
    verbs = Verbs(parts, monitor, elastic, recovery, idle, reporting, ports.admission, ports.ids, embedding)
    return Passes(parts, link, board, elastic, recovery, idle, verbs)


def _value_mode(config: EdgeConfig) -> ValueMode:
    return ValueMode.PAPER if config.memory.valuation == "paper" else ValueMode.PRODUCT


def _archive_mode(config: EdgeConfig, ports: EdgePorts) -> ArchiveMode | None:
    return ArchiveMode(config.archive.mode) if ports.endpoint is not None else None


def _elastic_options(config: EdgeConfig, ports: EdgePorts) -> ElasticOptions:
    return ElasticOptions(
        mode=EvictionMode(config.memory.eviction),
        retention=ports.retention,
        archive=_archive_mode(config, ports),
        grace_s=config.archive.grace_s,
        planner=ports.design.planner,
    )


def _idle_timings(config: EdgeConfig) -> IdleTimings:
    idle = config.idle
    return IdleTimings(idle.window_s, idle.patience_s, idle.pace_s, config.memory.stage_max_s)


def _identity(config: EdgeConfig, version: str) -> Identity:
    return Identity(
        version=version,
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
