"""Idle windows: promotions, archive-ahead and stages, when no recall needs the board; and `settle`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edge_agent.answers import Settled
from edge_agent.elastic import Elastic
from edge_agent.parts import Parts
from edge_agent.recovery import Recovery
from edge_agent.sync import SyncLink
from shared.errors import Code, TransientError
from shared.host.log import clean, get_logger

_TICK_S = 0.1
_NS = 1_000_000_000
_log = get_logger("idle")


@dataclass(frozen=True)
class IdleTimings:
    """Seconds; see the `idle` table of the configuration."""

    window_s: float
    patience_s: float
    pace_s: float
    stage_max_s: float


@dataclass(frozen=True)
class _Traffic:
    up_bytes: int
    down_bytes: int


@dataclass(frozen=True)
class _Situation:
    """What background work depends on: the same situation leaves nothing new to do."""

    event: int
    stage: int
    budget_bytes: int
    acked_seq: int
    link_up: bool
    generates: bool


class Board(Protocol):
    """What the idle loop asks of the board's own model."""

    def interrupt(self) -> None:
        """A recall needs the board."""

    async def relevel(self, give_way: Callable[[], bool], most: int | None = None) -> bool:
        """Let the model choose among sentences; True when a choice was kept."""


class Vectors(Protocol):
    """What the idle loop asks of the embedder."""

    async def fill(
        self, give_way: Callable[[], bool], most: int | None = None, *, awaited: bool = False
    ) -> int:
        """Make vectors for entries that want one and have room; how many were kept."""


class Idle:
    """Decides when background work may run. A recall closes the window at once."""

    def __init__(
        self,
        parts: Parts,
        elastic: Elastic,
        recovery: Recovery,
        link: SyncLink | None,
        timings: IdleTimings,
        board: Board | None = None,
        vectors: Vectors | None = None,
    ) -> None:
        self._parts = parts
        self._elastic = elastic
        self._recovery = recovery
        self._link = link
        self._timings = timings
        self._board = board
        self._vectors = vectors
        now = parts.clock.mono_ns()
        self._last_recall_mono_ns = now
        self._last_work_mono_ns = now
        self._stage_began_mono_ns = now
        self._seen_stage = parts.store.meta.stage
        self._archived = 0
        self._traffic = self._traffic_now()
        self._done_for: _Situation | None = None
        self._owed_in: _Situation | None = None
        self._last_problem: Code | None = None

    def recalled(self) -> None:
        """A recall is being served: background work gives way."""
        self._last_recall_mono_ns = self._parts.clock.mono_ns()
        if self._board is not None:
            self._board.interrupt()

    def wake(self) -> None:
        """Something changed that may let entries rise: look at the next idle tick."""
        self._done_for = None
        self._last_work_mono_ns -= round(self._timings.pace_s * _NS)
        self.wake_link()

    def wake_link(self) -> None:
        """The outbox may have something new."""
        if self._link is not None:
            self._link.wake()

    async def run(self) -> None:
        """The background loop; until cancelled."""
        while True:
            await self._parts.clock.sleep(_TICK_S)
            try:
                await self._tick()
            except TransientError as problem:
                self._put_off(problem)

    async def _tick(self) -> None:
        await self._turn_stage()
        if self._parts.lock.statistics().locked:
            return
        await self._pay_what_is_owed()
        if self._interrupted():
            if self._since_work_s() >= self._timings.patience_s:
                # No window for long: one entry, and the next after pace_s.
                await self._work(_never, 1)
                self._last_work_mono_ns -= round((self._timings.patience_s - self._timings.pace_s) * _NS)
        elif self._due():
            await self._work(self._interrupted, None)

    async def _pay_what_is_owed(self) -> None:
        """Over the budget, or a batch without room: no window is waited for. Once a situation."""
        situation = self._situation()
        if not self._elastic.short or situation == self._owed_in:
            return
        self._owed_in = situation
        async with self._parts.lock:
            await self._elastic.keep_within()
        self.wake_link()

    def _put_off(self, problem: TransientError) -> None:
        """A full disk does not end the daemon: recalls go on, and the work is tried again at its pace."""
        if problem.code is not self._last_problem:
            _log.warning("idle work is put off", code=problem.code.value, reason=clean(str(problem), 500))
        self._last_problem = problem.code
        self._last_work_mono_ns = self._parts.clock.mono_ns()
        self._done_for = None

    async def settle(self, timeout_s: float) -> Settled:
        """Work until nothing moves any more; what was done since the last settle."""
        clock = self._parts.clock
        started = clock.mono_ns()
        deadline = started + round(timeout_s * _NS)
        state = "timed_out"

        def late() -> bool:
            return clock.mono_ns() >= deadline

        while not late():
            left_s = max((deadline - clock.mono_ns()) / _NS, 0.0)
            flushed = self._link is None or await self._link.flush(left_s)
            async with self._parts.lock:
                moved = await self._elastic.keep_within()
            # What a squeeze queued is sent first: it is charged, and would hide room that is there.
            rose = not moved and await self._rise_unsent(late)
            await self._relevel(late, None)
            queued = await self._elastic.archive_all_ahead(left_s)
            self._archived += queued
            # Last: what a squeeze, a restore or an archive needs goes before a vector.
            embedded = 0 if moved or rose else await self._fill(late, None, awaited=True)
            if not (moved or rose or queued or embedded):
                state = "settled" if flushed else "link_down"
                break
        await self._parts.thread.run(self._parts.store.shrink)
        return self._told(state, (clock.mono_ns() - started) / 1e9)

    # --- private ------------------------------------------------------------------------------------------

    async def _rise_unsent(self, late: Callable[[], bool]) -> bool:
        """Rise while the link seals nothing: room must not hang on when a batch leaves."""
        if self._link is None:
            return await self._recovery.rise(late)
        self._link.pause()
        try:
            return await self._recovery.rise(late)
        finally:
            self._link.resume()

    async def _work(self, give_way: Callable[[], bool], most: int | None) -> None:
        seen = self._situation()
        async with self._parts.lock:
            moved = await self._elastic.keep_within()
        rose = await self._recovery.rise(give_way, most)
        # Before layers are made for the archive: a choice that comes later is refused.
        chose = await self._relevel(give_way, most)
        queued = await self._elastic.archive_ahead()
        self._archived += queued
        embedded = await self._fill(give_way, most)
        self._last_problem = None
        self._last_work_mono_ns = self._parts.clock.mono_ns()
        self._done_for = None if moved or rose or chose or queued or embedded or give_way() else seen

    async def _fill(self, give_way: Callable[[], bool], most: int | None, *, awaited: bool = False) -> int:
        return 0 if self._vectors is None else await self._vectors.fill(give_way, most, awaited=awaited)

    async def _relevel(self, give_way: Callable[[], bool], most: int | None) -> bool:
        return self._board is not None and await self._board.relevel(give_way, most)

    def _due(self) -> bool:
        """Planning over the whole store costs watts: only when something changed, and at most once a pace."""
        situation = self._situation()
        if situation == self._done_for or self._since_work_s() < self._timings.pace_s:
            return False
        if situation.link_up and not (self._done_for and self._done_for.link_up):
            self._recovery.forget_absences()
        return True

    def _situation(self) -> _Situation:
        meta, link = self._parts.store.meta, self._link
        up = link is not None and link.up
        generates = self._recovery.generates
        return _Situation(meta.event, meta.stage, meta.budget_bytes, meta.acked_seq, up, generates)

    def _interrupted(self) -> bool:
        quiet_s = (self._parts.clock.mono_ns() - self._last_recall_mono_ns) / _NS
        return quiet_s < self._timings.window_s

    def _since_work_s(self) -> float:
        return (self._parts.clock.mono_ns() - self._last_work_mono_ns) / _NS

    async def _turn_stage(self) -> None:
        now, stage = self._parts.clock.mono_ns(), self._parts.store.meta.stage
        if stage != self._seen_stage:
            self._seen_stage, self._stage_began_mono_ns = stage, now
        elif (now - self._stage_began_mono_ns) / _NS >= self._timings.stage_max_s:
            async with self._parts.lock:
                await self._elastic.end_stage()
            self.wake()

    def _traffic_now(self) -> _Traffic:
        if self._link is None:
            return _Traffic(0, 0)
        status = self._link.status()
        return _Traffic(status.link_up_bytes, status.link_down_bytes)

    def _told(self, state: str, seconds: float) -> Settled:
        counts, traffic = self._recovery.take_counts(), self._traffic_now()
        before, self._traffic = self._traffic, traffic
        archived, self._archived = self._archived, 0
        return Settled(
            state=state,
            promoted=sum(counts.promoted.values()),
            by_source=dict(counts.promoted),
            rejected=dict(counts.rejected),
            tokens=counts.tokens,
            archived=archived,
            lost_exact=self._elastic.take_lost_exact(),
            link_up_bytes=traffic.up_bytes - before.up_bytes,
            link_down_bytes=traffic.down_bytes - before.down_bytes,
            seconds=seconds,
        )


def _never() -> bool:
    return False
