"""Crystallize applied: chunk by chunk, resumable, steered by the measured bytes until both budgets hold.

Order: lossless moves first, then measure and plan again; archived entries before those the hub lacks;
evictions last. The plan is shared.memory.crystallize, the moves are the store's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from edge_agent.bodies import DEAD_SHARE
from edge_agent.columns import Pricing
from edge_agent.compactor import Compactor
from edge_agent.entries import EvictionReason
from edge_agent.plane import ENTRY_ROW_BYTES, STUB_BYTES, size_bytes
from edge_agent.store import Store
from edge_agent.sweep_report import SweepPhase, SweepReport, SweepStep
from edge_agent.table import Flag, lossy
from shared.memory import crystallize
from shared.memory.crystallize import Planner
from shared.memory.model import EvictionMode, Kind, Rung, SweepPlan
from shared.ports import RetainedEntry, Retention
from shared.units import KIB, MIB

# WAL of one transaction: scratch above the old budget is at most one chunk (spec.md 3).
WAL_CHUNK_BYTES = MIB
# Where a chunk aims, so that a scattered one still ends below the limit.
_WAL_AIM_BYTES = 640 * KIB
_FIRST_CHUNK_BYTES = 256 * KIB
_LEAST_CHUNK_BYTES = 16 * KIB
# Of the measured factor: a little under, so that one more round is rarely needed.
_STEER = 0.99
_MAX_ROUNDS = 16
# Vectors shed in one transaction: about 300 KB of pages.
_SHED_AT_ONCE = 4096
# While the file is still too large, blocks are rewritten for fewer dead bytes than in idle time.
_TIGHT_DEAD_SHARE = 0.05
# Two small blocks pack better as one.
_PAIR = 2


class Sweep:
    """Brings the store under its budget. One at a time; the caller may read between steps."""

    def __init__(
        self,
        store: Store,
        pricing: Callable[[], Pricing],
        *,
        mode: EvictionMode = EvictionMode.LAST_RESORT,
        retention: Retention | None = None,
        planner: Planner = crystallize.plan,
    ) -> None:
        self._store = store
        self._pricing = pricing
        self._planner = planner
        self._mode = mode
        self._retention = retention
        self._compactor = Compactor(store.plane)
        self._chunk_bytes = float(_FIRST_CHUNK_BYTES)
        self._values: Mapping[int, float] = {}
        self._done = 0
        self.report = SweepReport(store.meta.budget_bytes)

    # --- for the daemon -----------------------------------------------------------------------------

    def plan(self, budget_bytes: int) -> SweepPlan:
        """A dry run: what the first plan for this budget would be. Changes nothing."""
        return self._plan(self._store.account.aim_bytes(budget_bytes))

    def has_room(self, text_bytes: int) -> bool:
        """Whether a text can be written inside the budget without a sweep."""
        return self._store.fits(text_bytes)

    def steps(self, headroom_bytes: int = 0) -> Iterator[SweepStep]:
        """Meet the budget in force and leave `headroom_bytes` for a write. `report` is final at the end."""
        with self._store.bound.sweeping():
            yield from self._steps(headroom_bytes)

    def _steps(self, headroom_bytes: int) -> Iterator[SweepStep]:
        store, budget = self._store, self._store.meta.budget_bytes
        self.report = report = SweepReport(budget)
        if self._retention is not None and self._retention.budget_exempt:
            store.budget_met()
            report.usage = store.usage()
            return
        store.begin_sweep()
        # The log of recalls and writes is no reason to give anything up: disk is measured without it.
        store.shrink()
        room = budget - headroom_bytes
        target = min(store.account.aim_bytes(), room)
        while report.rounds < _MAX_ROUNDS:
            report.rounds += 1
            before = self._done
            yield from self._round(target)
            # Over the budget every dead byte is worth a rewrite, before anything more is given up.
            over = store.account.logical_bytes() > room
            yield from self._rewrite(self._compactor.worn_blocks(0.0 if over else DEAD_SHARE))
            if self._disk_excess(room) > 0:
                yield from self._compact()
            steered = self._steered(target, room)
            # Nothing moved and nothing lower to aim at: the store is at its least.
            if steered is None or (self._done == before and steered >= target):
                break
            target = steered
        store.retire_dictionaries()
        store.shrink()
        self._give_up_stubs(budget)
        report.usage = store.usage()
        if report.usage.holds:
            store.budget_met()
            # The note itself went through the log, which is budget too.
            store.shrink()

    def run(self, headroom_bytes: int = 0) -> SweepReport:
        """All steps at once."""
        for _ in self.steps(headroom_bytes):
            pass
        return self.report

    def resume(self) -> Iterator[SweepStep]:
        """Finish what a crash interrupted; nothing when no target is pending."""
        if self._store.meta.target_pending:
            yield from self.steps()

    # --- one round ------------------------------------------------------------------------------------

    def _round(self, target: float) -> Iterator[SweepStep]:
        """Plan and apply until the account says that the entries fit the target."""
        if self._retention is not None:
            yield from self._retain(self._retention, target)
            return
        plan = self._plan(target)
        lossless = [move.number for move in plan.moves if move.origin is Rung.FULL]
        if lossless and self._packs:
            yield from self._pack(lossless)
            # Estimates have become measurements: most plans end here with nothing lost.
            plan = self._plan(target)
        if any(move.to is Rung.EVICTED for move in plan.moves):
            # Blocks that pack badly apart are one again before an entry goes for them.
            yield from self._rewrite(self._compactor.worn_blocks(alike=_PAIR))
            plan = self._plan(target)
        self.report.price = max(self.report.price, plan.water_level)
        self.report.guard_yielded = max(self.report.guard_yielded, plan.guard_yielded)
        demoted = {move.number: move.to for move in plan.moves if move.to is not Rung.EVICTED}
        archived, missing = self._by_archive(demoted)
        yield from self._apply(SweepPhase.DEMOTE, archived)
        evicted = [move.number for move in plan.moves if move.to is Rung.EVICTED]
        if evicted and (shed := self._vectors_instead(evicted)):
            # The plan was made as if they stayed: the next round sees what is still over.
            yield from self._grace(tuple(missing))
            yield from self._apply(SweepPhase.DEMOTE, missing)
            yield from self._shed(shed)
            return
        yield from self._grace((*missing, *evicted))
        yield from self._apply(SweepPhase.DEMOTE, missing)
        reason = EvictionReason.PRICED if self._mode is EvictionMode.PRICED else EvictionReason.BUDGET
        yield from self._evict(evicted, reason)

    def _vectors_instead(self, evicted: Sequence[int]) -> list[int]:
        """Vectors to shed before an entry goes, least value first, for what the evictions would free."""
        table = self._store.table
        wanted = float((size_bytes(table.take(evicted)) - STUB_BYTES).sum())
        rows = table.rows()
        held = rows[rows["vector_bytes"] > 0]
        by_value = sorted(held["number"].tolist(), key=lambda number: (self._values.get(number, 0.0), number))
        each = self._store.plane.vectors.charged_bytes
        return by_value[: math.ceil(wanted / each)] if each else []

    def _retain(self, policy: Retention, target: float) -> Iterator[SweepStep]:
        """A policy instead of prices: the ladder's lossless rung first, then what the policy gives up."""
        store = self._store
        if store.account.logical_bytes() > target and self._packs:
            rows = store.table.rows()
            full = rows["number"][rows["facts"]["rung"] == Rung.FULL].tolist()
            yield from self._pack(full)
        # What an eviction leaves dead in a block is rewritten after this: it costs no further entry.
        while (excess := store.account.logical_bytes() - store.plane.bodies.dead_bytes() - target) > 0:
            self._plan_values()
            report = policy.enforce(_retained(store, self._values), excess, store.meta.event)
            known = [number for number in report.evicted if number in store.table]
            if not known:
                return
            yield from self._evict(known, EvictionReason.POLICY)

    def _pack(self, numbers: Sequence[int]) -> Iterator[SweepStep]:
        """The first pack of a kind is when its dictionary is trained, if one pays."""
        for kind in np.unique(self._store.table.take(numbers)["facts"]["kind"]).tolist():
            self._store.consider_dictionary(Kind(kind))
        yield from self._apply(SweepPhase.PACK, dict.fromkeys(numbers, Rung.PACKED))

    def _plan(self, target: float) -> SweepPlan:
        """Crystallize over the entries: the target less what belongs to none of them."""
        store = self._store
        pricing = self._plan_values()
        rows_budget = target - (store.account.logical_bytes() - store.account.entries_bytes())
        return self._planner(
            store.sweep_columns(pricing), store.plane.ladder, rows_budget, self._mode, pricing.tau
        )

    def _plan_values(self) -> Pricing:
        pricing = self._pricing()
        self._values = dict(zip(self._store.table.numbers().tolist(), pricing.values.tolist(), strict=True))
        self._store.set_values(self._values)
        return pricing

    @property
    def _packs(self) -> bool:
        return any(spec.rung is Rung.PACKED for spec in self._store.plane.ladder.rungs)

    def _by_archive(self, targets: Mapping[int, Rung]) -> tuple[dict[int, Rung], dict[int, Rung]]:
        """Moves that lose nothing that the hub lacks, and the others."""
        rows = self._store.table.take(targets)
        exact = ~lossy(rows["facts"]["rung"]) & ((rows["facts"]["flags"] & Flag.ARCHIVED) == 0)
        safe: dict[int, Rung] = {}
        missing: dict[int, Rung] = {}
        for (number, to), unarchived in zip(targets.items(), exact.tolist(), strict=True):
            (missing if unarchived and to.lossy else safe)[number] = to
        return safe, missing

    def _grace(self, numbers: Sequence[int]) -> Iterator[SweepStep]:
        """While the link is up: ship what this round would lose and let the caller wait for acks."""
        link = self._store.link
        if self._pricing().archive and (lacking := link.lacking(numbers)):
            link.ship(lacking)
            yield SweepStep(SweepPhase.GRACE, lacking)

    # --- chunks ---------------------------------------------------------------------------------------

    def _apply(self, phase: SweepPhase, targets: Mapping[int, Rung]) -> Iterator[SweepStep]:
        for chunk in self._chunks(targets):
            applied = self._store.apply_moves({number: targets[number] for number in chunk})
            self.report.add(applied)
            self._shrink()
            self._done += len(applied.moved)
            yield SweepStep(phase, tuple(move.number for move in applied.moved))

    def _evict(self, numbers: Sequence[int], reason: EvictionReason) -> Iterator[SweepStep]:
        for chunk in self._chunks(dict.fromkeys(numbers, Rung.EVICTED)):
            self.report.evicted.extend(self._store.evict(chunk, reason, self._values))
            self._shrink()
            self._done += len(chunk)
            yield SweepStep(SweepPhase.EVICT, gone=tuple(chunk))

    def _shed(self, numbers: Sequence[int]) -> Iterator[SweepStep]:
        for start in range(0, len(numbers), _SHED_AT_ONCE):
            self._store.vectors.shed(numbers[start : start + _SHED_AT_ONCE])
            self._shrink()
            yield SweepStep(SweepPhase.SHED)
        self._done += len(numbers)
        self.report.shed += len(numbers)

    def _rewrite(self, numbers: Sequence[int]) -> Iterator[SweepStep]:
        rows = self._store.table.take(numbers)
        rungs = {
            number: Rung(rung) for number, rung in zip(numbers, rows["facts"]["rung"].tolist(), strict=True)
        }
        for chunk in self._chunks(rungs):
            self.report.damaged.extend(self._store.rewrite(chunk).damaged)
            self._shrink()
            yield SweepStep(SweepPhase.REWRITE)

    def _compact(self) -> Iterator[SweepStep]:
        """Full blocks and pages again, before anything more is given up for them."""
        yield from self._rewrite(self._compactor.worn_blocks(_TIGHT_DEAD_SHARE))
        yield from self._rewrite(self._compactor.sparse_texts())
        if self._compactor.entries_are_sparse():
            for _ in self._compactor.repack_entries():
                self._shrink()
                yield SweepStep(SweepPhase.REWRITE)
        if self._compactor.vectors_are_sparse():
            for _ in self._compactor.repack_vectors():
                self._shrink()
                yield SweepStep(SweepPhase.REWRITE)

    def _chunks(self, targets: Mapping[int, Rung]) -> Iterator[list[int]]:
        """Numbers by target and kind, in storage order, cut where the WAL is expected to be full."""
        rows = self._store.table.take(targets)
        facts = rows["facts"]
        order = np.lexsort(
            (facts["slot"], facts["block"], facts["kind"], np.fromiter(targets.values(), np.int64, len(rows)))
        )
        weights = (ENTRY_ROW_BYTES + rows["body_bytes"][order]).tolist()
        chunk: list[int] = []
        size = 0.0
        for number, weight in zip(rows["number"][order].tolist(), weights, strict=True):
            if chunk and size + weight > self._chunk_bytes:
                yield chunk
                chunk, size = [], 0.0
            chunk.append(number)
            size += weight
        if chunk:
            yield chunk

    def _shrink(self) -> None:
        """Give pages back, and size the next chunk by the WAL that this one made."""
        written = self._store.account.wal_bytes()
        self._store.shrink()
        if written > 0:
            scale = min(max(_WAL_AIM_BYTES / written, 0.25), 2.0)
            self._chunk_bytes = min(max(self._chunk_bytes * scale, _LEAST_CHUNK_BYTES), _WAL_AIM_BYTES)

    # --- steering -------------------------------------------------------------------------------------

    def _give_up_stubs(self, budget: int) -> None:
        """The last resort of all: evictions themselves may leave more than the budget holds."""
        store = self._store
        while (over := max(store.account.logical_bytes() - budget, self._disk_excess(budget))) > 0:
            dropped = store.drop_stubs(over)
            if not dropped:
                return
            self.report.stubs_dropped += dropped
            store.shrink()

    def _disk_excess(self, room: float) -> float:
        return self._store.account.disk_bytes() - self._store.meta.empty_bytes - room

    def _steered(self, target: float, room: float) -> float | None:
        """None when both budgets hold; else the next target, by the measured factor."""
        logical = self._store.account.logical_bytes()
        disk = self._disk_excess(room) + room
        if logical <= room and disk <= room:
            return None
        by_account = target - max(logical - room, 0.0)
        by_disk = min(target, logical) * room / disk * _STEER if disk > room else target
        return min(by_account, by_disk)


def _retained(store: Store, values: Mapping[int, float]) -> list[RetainedEntry]:
    """What a policy may look at, ascending by number."""
    rows = store.table.rows()
    facts = rows["facts"]
    access = np.maximum(facts["created_event"], rows["heat"]["last_recall_event"])
    return [
        RetainedEntry(number, Kind(kind), created, last, size, values.get(number, 0.0))
        for number, kind, created, last, size in zip(
            rows["number"].tolist(),
            facts["kind"].tolist(),
            facts["created_event"].tolist(),
            access.tolist(),
            size_bytes(rows).tolist(),
            strict=True,
        )
    ]
