"""Eq. 7 as a pure decision: descend the hulls, cheapest move first, until the store fits its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shared.errors import Code, PermanentError
from shared.memory import front
from shared.memory.energy import ABOVE_ALL, Hull, barrier, chunks, guard_limit, hull
from shared.memory.model import EvictionMode, Ladder, Move, Rung, SweepColumns, SweepPlan
from shared.units import KIB

Mask = NDArray[np.bool_]
Float32s = NDArray[np.float32]

# Crystallize leaves the writes of a stage some room: 1 %, 256 KiB where that is more, never over 5 %.
_SLACK_SHARE = 0.01
_SLACK_BYTES = 256 * KIB
# A batch in flight takes half of it; a store that tells no hub needs less.
SLACK_LINKED = 0.05
SLACK_ALONE = 0.02


class Moves(Protocol):
    """Which moves a sweep may make and at what price: `shared.memory.energy.hull`, or another schedule."""

    def __call__(
        self,
        columns: SweepColumns,
        ladder: Ladder,
        tau: float,
        *,
        guarded: Mask | None = None,
        evictable: Mask | None = None,
    ) -> Hull: ...


Planner = Callable[[SweepColumns, Ladder, float, EvictionMode, float], SweepPlan]
"""What `plan` is: the decision over (columns, ladder, budget of the rows, eviction mode, tau)."""


@dataclass(frozen=True)
class Decision:
    """What becomes of every row of the columns.

    position: target ladder position; `len(ladder.rungs)` = evicted. price: the dearest price the row
    paid, phase: the step of the order in which it last moved, from 1 (0 = not moved).
    """

    position: NDArray[np.int8]
    price: NDArray[np.float32]
    phase: NDArray[np.int8]
    water_level: float
    size_before_bytes: float
    size_after_bytes: float
    feasible: bool
    guard_yielded: int


def plan(
    columns: SweepColumns,
    ladder: Ladder,
    budget_bytes: float,
    mode: EvictionMode,
    tau: float,
    moves: Moves = hull,
) -> SweepPlan:
    """The decision as moves in price order. `budget_bytes` is for the rows alone (less shared bytes)."""
    return sweep_plan(columns, ladder, decide(columns, ladder, budget_bytes, mode, tau, moves))


def decide(
    columns: SweepColumns,
    ladder: Ladder,
    budget_bytes: float,
    mode: EvictionMode,
    tau: float,
    moves: Moves = hull,
) -> Decision:
    """Vectorised water-filling. Infeasible = everything at its floor is still over the budget.

    Order: hull moves with the guard, in priced mode down to eviction; eviction of rows neither exempt nor
    guarded; the guard yields; eviction of rows not exempt; eviction of the rest.
    """
    sweep = _Sweep(columns, ladder, budget_bytes, tau, moves)
    sweep.descend(None, guarded=True, evictable=competing(columns) if mode is EvictionMode.PRICED else None)
    sweep.evict(~columns.exempt & ~columns.guarded)
    sweep.descend(columns.guarded, guarded=False)
    sweep.evict(~columns.exempt)
    sweep.evict(np.ones_like(columns.exempt))
    return sweep.decision()


def sweep_plan(columns: SweepColumns, ladder: Ladder, decision: Decision) -> SweepPlan:
    """One Move per moved row, origin to final rung, in the order in which the front reached them.

    A move's price is the dearest step's; that of a last-resort eviction is its v / mu.
    """
    moved = np.flatnonzero(decision.phase)
    keys = (*reversed(_ties(columns)), decision.price, decision.phase)
    moved = moved[np.lexsort([key[moved] for key in keys])]
    rungs = [*(spec.rung for spec in ladder.rungs), Rung.EVICTED]
    moves = tuple(
        Move(number, rungs[origin], rungs[to], price)
        for number, origin, to, price in zip(
            columns.number[moved].tolist(),
            columns.position[moved].tolist(),
            decision.position[moved].tolist(),
            decision.price[moved].tolist(),
            strict=True,
        )
    )
    return SweepPlan(
        moves,
        decision.water_level,
        decision.size_before_bytes,
        decision.size_after_bytes,
        decision.feasible,
        decision.guard_yielded,
    )


def floor_bytes(columns: SweepColumns) -> float:
    """The least the rows can come to: what evictions leave, or a rung where that is smaller."""
    return float(np.minimum(_left_behind(columns), _smallest(columns)).sum(dtype=np.float64))


def trace_bytes(columns: SweepColumns) -> float:
    """All rows at their smallest rung, nothing evicted: reported beside the floor."""
    return float(_smallest(columns).sum(dtype=np.float64))


def aim_bytes(budget_bytes: float, most_slack: float = SLACK_LINKED) -> float:
    """What Crystallize aims at under a budget, so that writes have room until the next sweep."""
    slack = max(_SLACK_SHARE * budget_bytes, _SLACK_BYTES)
    return budget_bytes - min(most_slack * budget_bytes, slack)


class _Sweep:
    """The state of one decision; each step does nothing once the rows fit."""

    def __init__(
        self, columns: SweepColumns, ladder: Ladder, budget_bytes: float, tau: float, moves: Moves
    ) -> None:
        self._columns = columns
        self._moves = moves
        self._ladder = ladder
        self._tau = tau
        self._evicted = len(ladder.rungs)
        self._position = columns.position.copy()
        self._price = np.zeros(columns.value.size, np.float32)
        self._phase = np.zeros(columns.value.size, np.int8)
        self._step = 0
        self._level = 0.0
        self._before = float(_present(columns, columns.position).sum(dtype=np.float64))
        if not np.isfinite(self._before):
            raise PermanentError(Code.INTERNAL, "an entry stands on a rung whose size is not known")
        self._freed = 0.0
        self._need = self._before - budget_bytes

    def descend(self, among: Mask | None, *, guarded: bool, evictable: Mask | None = None) -> None:
        """Move rows (None = all) down their moves, cheapest first."""
        self._step += 1
        if self._need <= self._freed:
            return
        rows = None if among is None else np.flatnonzero(among & (self._position < self._evicted))
        columns = self._columns if rows is None else _rows(self._columns, rows, self._position)
        guard = columns.guarded if guarded else None
        moves = self._moves(columns, self._ladder, self._tau, guarded=guard, evictable=evictable)
        targets = range(1, len(moves.price) + 1)
        level = self._take(columns, rows, moves.price, moves.freed_bytes, targets)
        self._level = max(self._level, level)

    def evict(self, among: Mask) -> None:
        """Last resort: rows go in ascending v / mu; a stub stays where all layers are acked."""
        self._step += 1
        if self._need <= self._freed:
            return
        rows = np.flatnonzero(among & (self._position < self._evicted))
        columns = _rows(self._columns, rows, self._position)
        size = _present(columns, columns.position)
        freed = np.maximum(size - _left_behind(columns), np.float32(0.0))
        density = np.fmax(columns.value, np.float32(0.0)) / np.maximum(size, np.float32(1.0))
        price = np.where(freed > 0, density, np.float32(np.inf))
        self._take(columns, rows, price[None], freed[None], (self._evicted,))

    def decision(self) -> Decision:
        """The state as a result."""
        columns = self._columns
        after = self._before - self._freed
        yielded = columns.guarded & (self._position > np.maximum(columns.position, guard_limit(self._ladder)))
        return Decision(
            self._position,
            self._price,
            self._phase,
            self._level,
            self._before,
            after,
            self._need <= self._freed,
            int(np.count_nonzero(yielded)),
        )

    def _take(
        self,
        columns: SweepColumns,
        rows: NDArray[np.int64] | None,
        price: Float32s,
        freed_bytes: Float32s,
        targets: Sequence[int],
    ) -> float:
        passed = front.advance(price, freed_bytes, self._need - self._freed, _ties(columns))
        here: NDArray[np.int64] | slice = slice(None) if rows is None else rows
        position, dearest, phase = self._position[here], self._price[here], self._phase[here]
        if rows is not None:
            # Prices of different steps are not on one scale.
            dearest[passed.taken.any(axis=0)] = 0.0
        for part in chunks(position.size):
            for taken, paid, target in zip(passed.taken[:, part], price[:, part], targets, strict=True):
                # All three only rise, so a maximum does for a select (see `barrier`).
                position[part] = np.maximum(position[part], taken * np.int8(target))
                phase[part] = np.maximum(phase[part], taken * np.int8(self._step))
                dearest[part] = np.maximum(dearest[part], np.minimum(paid, taken * ABOVE_ALL))
        self._position[here], self._price[here], self._phase[here] = position, dearest, phase
        self._freed += passed.freed_bytes
        return passed.level


def _ties(columns: SweepColumns) -> tuple[NDArray[np.integer], ...]:
    """What settles equal prices, all ascending: the least recalled, then the oldest, sinks first."""
    return columns.recalls_last_stage, columns.last_recall, columns.created, columns.id_rank


def _rows(columns: SweepColumns, rows: NDArray[np.int64], position: NDArray[np.int8]) -> SweepColumns:
    """The columns of some rows, at the positions they have reached."""
    picked = {column.name: getattr(columns, column.name)[rows] for column in fields(columns)}
    return replace(columns, **picked | {"position": position[rows]})


def _present(columns: SweepColumns, position: NDArray[np.int8]) -> Float32s:
    """Whole bytes of each row at its position."""
    size = np.full(position.size, np.inf, np.float32)
    for part in chunks(position.size):
        for k, there in enumerate(columns.size_bytes[part].T):
            size[part] = np.minimum(size[part], np.maximum(np.ceil(there), barrier(position[part] != k)))
    return size


def competing(columns: SweepColumns) -> Mask:
    """Rows that may be evicted by price: a guard keeps fidelity, not the entry itself (DECISIONS.md 33).

    A stub no smaller than the smallest rung would be no saving.
    """
    return ~columns.protected & (_left_behind(columns) < _smallest(columns))


def _left_behind(columns: SweepColumns) -> Float32s:
    """What an eviction leaves of each row."""
    return np.ceil(columns.stub_bytes)


def _smallest(columns: SweepColumns) -> Float32s:
    """Each row's smallest rung, from its position down."""
    size = _present(columns, columns.position)
    for k in range(columns.size_bytes.shape[1]):
        offered = np.maximum(columns.size_bytes[:, k], barrier(columns.position > k))
        size = np.minimum(size, np.ceil(offered))
    return size
