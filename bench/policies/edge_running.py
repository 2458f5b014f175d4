"""What lives in the event loop of a CrystalMem arm: its passes, its link, and a hub where there is one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench.policies.contract import Held, Spending
from bench.policies.edge_arms import EdgeSpec, Witness, moves_of
from bench.policies.edge_hub import hub
from bench.policies.edge_parts import (
    CountedIds,
    CountedRng,
    EventClock,
    OpenGate,
    OwnThread,
    RememberedCodec,
)
from bench.policies.edge_regen import Endpoint, Local, generator
from edge_agent.assembly import (
    Design,
    EdgePorts,
    Passes,
    WriteAll,
    close_parts,
    compose,
    make_link,
    open_parts,
    text_codecs,
)
from edge_agent.distill import PlainDistiller
from edge_agent.embedding import Embedding
from edge_agent.store import Store
from edge_agent.sync import LinkEndpoint, SyncLink
from edge_agent.table import lossy, shown_rungs
from shared.config import ArchiveConfig, EdgeConfig, EmbedderConfig, MemoryConfig
from shared.host.files import directory_bytes
from shared.memory import crystallize
from shared.memory.crystallize import Moves
from shared.memory.model import LADDERS, EvictionMode, Ladder, Rung, SweepColumns, SweepPlan
from shared.memory.text_codec import TextCodec
from shared.memory.value import ValueColumns

_TENANT = "bench"
_POLL_S = 0.01
# One of each for a process: texts come again with every seed, path and arm.
_CODEC = RememberedCodec(TextCodec(PlainDistiller()))
_OPEN_GATE = OpenGate(TextCodec(PlainDistiller()))


class TimedPlanner:
    """crystallize.Planner: the arm's schedule, and how long it has planned in all."""

    def __init__(self, moves: Moves, witness: Witness | None) -> None:
        self.seconds = 0.0
        self._moves = moves
        self._witness = witness

    def __call__(
        self, columns: SweepColumns, ladder: Ladder, budget_bytes: float, mode: EvictionMode, tau: float
    ) -> SweepPlan:
        started = time.perf_counter()
        planned = crystallize.plan(columns, ladder, budget_bytes, mode, tau, self._moves)
        self.seconds += time.perf_counter() - started
        if self._witness is not None:
            self._witness(columns, tau, budget_bytes, planned)
        return planned


@dataclass
class Running:
    """The passes, and what the arm reads of them. Methods run in the loop, whose thread owns the store."""

    passes: Passes
    planner: TimedPlanner
    rho: float
    stand_in: bool
    """A deterministic rule drafts where the system would ask a model."""
    ledger_rows: int = 0

    @property
    def _store(self) -> Store:
        return self.passes.parts.store

    async def held(self) -> Held:
        """The account, split."""
        store = self._store
        rows = store.table.rows()
        bodies = rows["body_bytes"].astype(float)
        residues = lossy(rows["facts"]["rung"])
        text = float(bodies[~residues].sum()) + float(rows["overlay_bytes"].sum())
        residue, vectors = float(bodies[residues].sum()), float(rows["vector_bytes"].sum())
        shared, total = store.account.shared_bytes(), store.account.logical_bytes()
        metadata = total - text - residue - vectors - shared
        return Held(
            text, metadata, vectors, residue, shared, float(directory_bytes(store.plane.db.path.parent))
        )

    async def shown(self) -> dict[int, Rung]:
        """Live entries by the rung that recall shows."""
        rows = self._store.table.rows()
        pairs = zip(rows["number"].tolist(), shown_rungs(rows).tolist(), strict=True)
        return {number: Rung(rung) for number, rung in pairs}

    async def values(self) -> dict[int, float]:
        """v of Eq. 6 by number."""
        return self.passes.parts.valuation.by_number()

    async def columns(self) -> ValueColumns:
        """What Eq. 8 and 9 look at, ascending by number."""
        return self._store.value_columns()

    async def spending(self) -> Spending:
        """What this stage's regeneration was charged, its cap, and seconds of planning so far."""
        state, meta = self.passes.parts.state, self._store.meta
        return Spending(
            regeneration_tokens=float(state.tokens_spent(meta.tenant, meta.stage)),
            cap_tokens=self.rho * state.serving_tokens(meta.stage - 1),
            scheduler_s=self.planner.seconds,
        )

    async def take_rejected(self) -> dict[str, int]:
        """Refused drafts by the rung that they were made from, since this was asked last."""
        rows = self.passes.parts.state.attempts(self.ledger_rows)
        self.ledger_rows += len(rows)
        return dict(Counter(row.origin.name.lower() for row in rows if not row.admitted and row.tokens))


@asynccontextmanager
async def running(
    found: EdgeSpec, seed: int, directory: Path, clock: EventClock, originals: Mapping[int, str]
) -> AsyncIterator[Running]:
    """Open everything below `directory`, with a hub once the link is up; closed in the end."""
    codec = _CODEC if found.gate else _OPEN_GATE
    drafter = generator(found.generator, seed, originals, codec, LADDERS[found.ladder], clock)
    planner = TimedPlanner(moves_of(found), found.witness)
    if not found.archive:
        async with _edge(found, seed, directory, clock, codec, drafter, planner, None) as (passes, _):
            yield Running(passes, planner, found.rho, isinstance(drafter, Local))
        return
    (directory / "hub").mkdir()
    async with (
        hub(directory / "hub", found.rho, _TENANT) as endpoint,
        _edge(found, seed, directory, clock, codec, drafter, planner, endpoint) as (passes, link),
        anyio.create_task_group() as tasks,
    ):
        if link is not None:
            tasks.start_soon(link.run)
            await _up(link)
        yield Running(passes, planner, found.rho, isinstance(drafter, Local))
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _edge(
    found: EdgeSpec,
    seed: int,
    directory: Path,
    clock: EventClock,
    codec: RememberedCodec,
    drafter: Local | Endpoint | None,
    planner: TimedPlanner,
    endpoint: LinkEndpoint | None,
) -> AsyncIterator[tuple[Passes, SyncLink | None]]:
    config = _config(found, directory / "edge")
    ports = EdgePorts(
        clock=clock,
        rng=CountedRng(seed),
        ids=CountedIds(),
        codecs=text_codecs(codec),
        admission=WriteAll(),
        retention=None,
        endpoint=endpoint,
        design=Design(
            planner=planner,
            signal=found.signal or Store.value_columns,
            generator=drafter,
            disk_meter=_unmetered,
        ),
    )
    (config.directory / "memory").mkdir(parents=True)
    parts = open_parts(config, ports, OwnThread("store", clock), anyio.Lock())
    try:
        link = make_link(parts, ports)
        embedding = Embedding(
            parts, OwnThread("embedder", clock), None, absence="by words alone", query_timeout_s=1.0
        )
        yield compose(config, ports, parts, link, embedding, "bench"), link
    finally:
        if drafter is not None:
            await drafter.aclose()
        close_parts(parts)


def _unmetered(_: Path) -> int:
    """The baselines have no files: what is compared is the logical account (Held.disk tells the files)."""
    return 0


async def _up(link: SyncLink) -> None:
    while not link.up:  # noqa: ASYNC110 - the link tells its phase, and no event
        await anyio.sleep(_POLL_S)


def _config(found: EdgeSpec, directory: Path) -> EdgeConfig:
    memory = MemoryConfig(
        ladder=found.ladder,
        valuation=found.valuation,
        coupling=found.coupling,
        rho=found.rho,
        eviction=found.eviction,
    )
    return EdgeConfig(
        tenant=_TENANT,
        data_dir=str(directory),
        memory=memory,
        archive=ArchiveConfig(mode="demoted" if found.archive else "never"),
        embedder=EmbedderConfig(model="none"),
    )
