"""The byte budget in force: squeezes, writes at a full budget, archive-ahead, the end of a stage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio

from edge_agent.entries import ArchiveMode, EvictedEntry, StageTally
from edge_agent.parts import Parts, used_bytes
from edge_agent.sweep import Sweep
from edge_agent.sweep_report import SweepPhase, SweepReport, SweepStep
from edge_agent.sync import SyncLink
from shared import metrics
from shared.errors import Code, InputError, TransientError
from shared.host.log import get_logger
from shared.memory import crystallize
from shared.memory.crystallize import Planner
from shared.memory.model import EvictionMode, Rung, SweepPlan
from shared.ports import Retention

_log = get_logger("elastic")
# Archive ahead covers what a squeeze to this share of the budget in force would drop (spec.md 5).
_AHEAD_SHARE = 0.25
# Shipping makes entries cheaper to demote, so the plan shifts; it settles within a few rounds.
_AHEAD_ROUNDS = 8
# A start looks this often whether the link is up.
_LINK_POLL_S = 0.05
# Half-empty pages that a write may leave in the file, where bytes alone were not enough.
_PAGES_BYTES = 1024


@dataclass(frozen=True)
class ElasticOptions:
    """mode: eviction. archive None = no hub is configured. grace_s: how long a squeeze waits for acks.

    planner: what decides a squeeze; Eq. 7 unless a comparison puts another schedule in its place.
    """

    mode: EvictionMode
    retention: Retention | None
    archive: ArchiveMode | None
    grace_s: float
    planner: Planner = crystallize.plan


class Elastic:
    """Crystallize in the daemon."""

    def __init__(self, parts: Parts, link: SyncLink | None, options: ElasticOptions) -> None:
        self._parts = parts
        self._link = link
        self._options = options
        self._lost_exact = 0
        self._grace_left_s = 0.0
        self._sweep = Sweep(
            parts.store,
            lambda: parts.valuation.pricing(archive=link is not None and link.up),
            mode=options.mode,
            retention=options.retention,
            planner=options.planner,
        )
        parts.store.witness_evictions(self._note_evictions)
        if options.retention is None or not options.retention.budget_exempt:
            parts.store.bound.hold()

    @property
    def short(self) -> bool:
        """Whether a sweep is owed, or a batch waits for room."""
        store = self._parts.store
        return bool(store.meta.target_pending) or store.link.starved

    @property
    def mode(self) -> EvictionMode:
        """When eviction may compete."""
        return self._options.mode

    async def squeeze(self, headroom_bytes: int = 0) -> SweepReport:
        """Meet the budget in force; recalls are served between chunks. Call with the lock held.

        Room is left for a write, or for the batch that the link will seal next, whichever is more.
        """
        reserve = math.ceil(await self._parts.thread.run(self._parts.store.link.reserve_bytes))
        return await self._run(self._sweep.steps(max(headroom_bytes, reserve)))

    async def resume(self) -> None:
        """Finish the sweep, or bring in the log, that a crash left. Call with the lock held."""
        if self._parts.store.meta.target_pending:
            await self._await_link()
            await self.squeeze()
        else:
            with suppress(TransientError):
                # No sweep was promised: on a full disk recalls are served all the same.
                await self.keep_within()
        if self._parts.store.meta.target_pending:
            # A recall, or a new epoch of the link, came in behind the sweep.
            await self.keep_within()

    async def _run(self, steps: Iterator[SweepStep]) -> SweepReport:
        started = self._parts.clock.mono_ns()
        self._grace_left_s = self._options.grace_s
        if self._link is not None:
            self._link.pause()
        try:
            while (step := await self._parts.thread.run(self._advance, steps)) is not None:
                if step.phase is SweepPhase.GRACE:
                    await self._grace()
        finally:
            if self._link is not None:
                self._link.resume()
        report = self._sweep.report
        await self._parts.thread.run(self._book, report)
        metrics.SWEEP_SECONDS.observe((self._parts.clock.mono_ns() - started) / 1e9)
        return report

    async def make_room(self, text_bytes: int) -> None:
        """A write that would not fit demotes first; refused when even that is not enough. Under the lock."""
        thread = self._parts.thread
        if await thread.run(self._sweep.has_room, text_bytes):
            return
        written = await thread.run(self._parts.store.account.written_bytes, text_bytes)
        for pages_bytes in (0, _PAGES_BYTES):
            await self.squeeze(headroom_bytes=written + pages_bytes)
            if await thread.run(self._sweep.has_room, text_bytes):
                break
        else:
            free = self._parts.store.meta.budget_bytes - await thread.run(used_bytes, self._parts.store)
            raise InputError(
                Code.ENTRY_OVER_BUDGET,
                "the budget has no room for it, even with everything else demoted",
                text_bytes=text_bytes,
                free_bytes=max(round(free), 0),
                hint="Raise the budget, or write less",
            )

    async def keep_within(self) -> bool:
        """Recalls and the outbox cost bytes too: squeeze where they used up the slack. Under the lock."""
        if await self._parts.thread.run(self._within):
            return False
        report = await self.squeeze()
        return bool(report.moves or report.evicted)

    async def end_within(self) -> None:
        """A change that came to more than its estimate is followed by the sweep. Call with the lock held."""
        if self._parts.store.meta.target_pending:
            await self.keep_within()

    async def set_budget(
        self, budget_bytes: int, provision_bytes: int | None, capability: float | None
    ) -> SweepReport:
        """Put a budget in force, end the stage, and squeeze. Call with the lock held."""
        await self._parts.thread.run(self._change, budget_bytes, provision_bytes, capability)
        return await self.squeeze()

    async def end_stage(self) -> None:
        """A stage without a budget event has run its time."""
        await self._parts.thread.run(self._end_stage, None)

    async def plan(self, budget_bytes: int) -> SweepPlan:
        """What a budget would do; after a squeeze that is under way."""
        async with self._parts.lock:
            return await self._parts.thread.run(self._sweep.plan, budget_bytes)

    async def archive_ahead(self) -> int:
        """Queue the layers of what a deep squeeze would drop next; how many were queued."""
        if self._options.archive in {None, ArchiveMode.NEVER} or self._link is None or not self._link.up:
            return 0
        async with self._parts.lock:
            queued, lacking = await self._parts.thread.run(self._ship_ahead)
            if lacking and not queued:
                # Queued rows and the batch of their layers are charged: room comes first.
                await self.squeeze()
                queued, _ = await self._parts.thread.run(self._ship_ahead)
        if queued:
            self._link.wake()
        return queued

    async def archive_all_ahead(self, timeout_s: float) -> int:
        """archive_ahead until the plan asks for nothing more; how many were queued."""
        total = 0
        for _ in range(_AHEAD_ROUNDS):
            queued = await self.archive_ahead()
            if not queued or self._link is None or not await self._link.flush(timeout_s):
                break
            total += queued
        return total

    def sinking_next(self) -> tuple[int, ...]:
        """What a deep squeeze would take below exact, in price order. Store's thread."""
        plan = self._sweep.plan(round(_AHEAD_SHARE * self._parts.store.meta.budget_bytes))
        return tuple(_sinking(plan))

    def take_lost_exact(self) -> int:
        """Entries that lost exactness since this was asked last, by any sweep."""
        lost, self._lost_exact = self._lost_exact, 0
        return lost

    # --- private ------------------------------------------------------------------------------------------

    async def _await_link(self) -> None:
        """A hub that is there gets the chance that an uninterrupted sweep gives it."""
        if self._link is None or self._options.archive in {None, ArchiveMode.NEVER}:
            return
        with anyio.move_on_after(self._options.grace_s):
            while not self._link.up:
                await self._parts.clock.sleep(_LINK_POLL_S)

    def _within(self) -> bool:
        self._parts.store.shrink()
        store = self._parts.store
        holds = store.account.holds(store.link.reserve_bytes())
        if holds and store.meta.target_pending:
            # An ack or a forgotten entry has made the room that was owed.
            store.budget_met()
            store.shrink()
        return holds

    def _advance(self, steps: Iterator[SweepStep]) -> SweepStep | None:
        """One chunk and its index entries in one job: a recall in between would find what is gone."""
        step = next(steps, None)
        if step is not None and (step.changed or step.gone):
            self._parts.retrieval.refresh((*step.changed, *step.gone))
        return step

    async def _grace(self) -> None:
        """Give the hub a last chance to take layers about to be dropped; grace_s a sweep in all."""
        if self._link is None or not self._link.up or self._grace_left_s <= 0:
            return
        asked = self._parts.clock.mono_ns()
        self._link.resume()
        await self._link.flush(self._grace_left_s)
        self._link.pause()
        self._grace_left_s -= (self._parts.clock.mono_ns() - asked) / 1e9

    def _change(self, budget_bytes: int, provision_bytes: int | None, capability: float | None) -> None:
        store = self._parts.store
        before = store.meta.budget_bytes
        store.set_budget(budget_bytes, provision_bytes)
        self._end_stage(capability, before)

    def _end_stage(self, capability: float | None, budget_bytes: int | None = None) -> None:
        """Loop point (Alg. 1 line 2) and the value scale of the stage that ends."""
        parts = self._parts
        store = parts.store
        tally: StageTally = store.begin_stage(parts.valuation.fitted_scale())
        fraction = (budget_bytes or store.meta.budget_bytes) / store.meta.provision_bytes
        parts.state.end_stage(tally, fraction, capability, parts.clock.wall_ns())
        store.set_values(parts.valuation.by_number())

    def _ship_ahead(self) -> tuple[int, int]:
        """How many layers were queued, and how many entries still lack theirs."""
        link, numbers = self._parts.store.link, self.sinking_next()
        return link.ship(numbers), len(link.unshipped(numbers))

    def _note_evictions(self, gone: Sequence[EvictedEntry]) -> None:
        parts = self._parts
        parts.state.record_evictions(gone, parts.store.meta.stage, parts.clock.wall_ns())

    def _book(self, report: SweepReport) -> None:
        if report.stubs_dropped:
            _log.warning("stubs were given up: only the hub knows these entries", stubs=report.stubs_dropped)
        self._parts.state.record_sweep(report, self._parts.store.meta.stage, self._parts.clock.wall_ns())
        for move in report.moves.values():
            metrics.MOVES.labels(origin=metrics.rung_label(move.origin), to=metrics.rung_label(move.to)).inc()
        for gone in report.evicted:
            metrics.EVICTIONS.labels(reason=gone.reason.value).inc()
        metrics.LOST_EXACT.inc(len(report.lost_exact))
        self._lost_exact += len(report.lost_exact)


def _sinking(plan: SweepPlan) -> Iterator[int]:
    """Entries that would lose exactness, in price order."""
    for move in plan.moves:
        if move.to is Rung.EVICTED or move.to.lossy:
            yield move.number
