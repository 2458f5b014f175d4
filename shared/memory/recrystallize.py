"""Eq. 10 as a pure plan: exact restores, then model drafts, then unpacking, under every cap (spec.md 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.memory.model import Ladder, Promotion, Rung, Source
from shared.memory.utility import utilities

Float32s = NDArray[np.float32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Unpacking buys speed, not capability: only for what is in use, and never with the last fifth of the bytes.
_HOT_RECALLS = 3
_UNPACK_SHARE = 0.8


@dataclass(frozen=True)
class RecoveryColumns:
    """Every entry that could rise, one row an entry (n rows, R rungs of the ladder).

    position: ladder position of the exact base; R = evicted, of which `stub_bytes` are left.
    overlay_position, overlay_bytes: the generated text above the base (-1, 0 where there is none).
    size_bytes[i, k]: mu of the base at k, also the estimate of an overlay at k; inf = not offered.
    draft_tokens[i, k]: what a draft up to k is expected to cost.
    exact_source, model_source: usable now (link up, layers acked; endpoint there, not backed off).
    archive_bytes: link bytes of an exact restore.
    """

    number: NDArray[np.int64]
    kind: NDArray[np.uint8]
    position: NDArray[np.int8]
    overlay_position: NDArray[np.int8]
    size_bytes: Float32s
    stub_bytes: Float32s
    overlay_bytes: Float32s
    value: Float32s
    recalls_last_stage: NDArray[np.int32]
    last_recall: NDArray[np.int64]
    created: NDArray[np.int64]
    id_rank: NDArray[np.int64]
    exact_source: NDArray[np.bool_]
    model_source: NDArray[np.bool_]
    draft_tokens: Float32s
    archive_bytes: Float32s


@dataclass(frozen=True)
class RecoveryCaps:
    """What is left to spend. used_bytes counts everything the budget counts, reservations in flight too."""

    budget_bytes: float
    used_bytes: float
    tokens: float
    archive_bytes: float = float("inf")


def plan(columns: RecoveryColumns, ladder: Ladder, caps: RecoveryCaps) -> tuple[Promotion, ...]:
    """Promotions in the order in which to make them; together they break no cap.

    Drafts lift one rung at a time: an entry may appear once a rung, and a step whose origin is no
    longer the entry's rung (the draft below it was rejected) is to be skipped.
    """
    recovery = _Recovery(columns, ladder, caps)
    recovery.restore()
    while recovery.draft():
        pass
    recovery.unpack()
    return tuple(recovery.promotions)


class _Recovery:
    """The state of one plan: rungs reached so far and what is left under each cap."""

    def __init__(self, columns: RecoveryColumns, ladder: Ladder, caps: RecoveryCaps) -> None:
        self.promotions: list[Promotion] = []
        self._columns = columns
        self._caps = caps
        self._rungs = [*(spec.rung for spec in ladder.rungs), Rung.EVICTED]
        kept = utilities(ladder).astype(np.float64)
        # Nothing is kept of what is evicted.
        self._utility = np.column_stack([kept, np.zeros(len(kept))])[columns.kind]
        overlaid = columns.overlay_position >= 0
        self._shown = np.where(overlaid, columns.overlay_position, columns.position).astype(np.int64)
        self._overlay_bytes = np.where(overlaid, columns.overlay_bytes, 0.0).astype(np.float64)
        self._sizes = np.ceil(np.column_stack([columns.size_bytes, columns.stub_bytes]).astype(np.float64))
        self._headroom = caps.budget_bytes - caps.used_bytes
        self._tokens = caps.tokens
        # The cold resting state: nothing above it is bought in bytes.
        self._rest = self._rungs.index(Rung.PACKED) if Rung.PACKED in self._rungs else 0

    def restore(self) -> None:
        """Exact restores by v * dr / dmu, straight to the resting rung or the highest that fits."""
        columns = self._columns
        rows = np.flatnonzero(columns.exact_source & (columns.position > self._rest))
        base = columns.position[rows].astype(np.int64)
        targets = np.arange(self._rest, int(base.max(initial=self._rest + 1)))
        # A base as useful as its overlay replaces it; a lower one would show nothing new.
        held = self._sizes[rows, base] + self._overlay_bytes[rows]
        growth = self._sizes[np.ix_(rows, targets)] - held[:, None]
        shown = self._utility[rows, self._shown[rows]]
        offered = self._utility[np.ix_(rows, targets)]
        growth[(targets >= base[:, None]) | (offered < shown[:, None])] = np.inf
        gain = self._utility[rows, self._rest] - shown
        waiting = self._by_density(rows, gain, growth[:, 0])
        link, purse = columns.archive_bytes[rows].astype(np.float64), self._caps.archive_bytes
        freed = True
        # A base that replaces a larger overlay makes room for what did not fit before it.
        while freed and waiting.size:
            room = (self._headroom, purse)
            choice, (self._headroom, purse) = _greedy(growth[waiting], link[waiting], room)
            freed = False
            for at, chosen in zip(waiting[choice >= 0].tolist(), choice[choice >= 0].tolist(), strict=True):
                row, origin, target = int(rows[at]), int(base[at]), int(targets[chosen])
                self._promote(row, origin, target, Source.ARCHIVE, growth[at, chosen])
                freed |= bool(growth[at, chosen] < 0)
            waiting = waiting[choice < 0]

    def draft(self) -> bool:
        """One round of drafts by v * dr / c, each one rung up; False when none was affordable."""
        columns = self._columns
        target = self._next_overlay()
        # Nothing is worth tokens at value 0, or where the archive will give the original for none.
        able = columns.model_source & ~columns.exact_source & (_worth(columns.value) > 0) & (target >= 0)
        rows = np.flatnonzero(able)
        target, origin = target[rows], self._shown[rows]
        growth = self._sizes[rows, target] - self._overlay_bytes[rows]
        tokens = columns.draft_tokens[rows, target].astype(np.float64)
        gain = self._utility[rows, target] - self._utility[rows, origin]
        order = self._by_density(rows, gain, tokens)
        room = (self._headroom, self._tokens)
        choice, (self._headroom, self._tokens) = _greedy(growth[order][:, None], tokens[order], room)
        drafted = order[choice >= 0]
        for at in drafted.tolist():
            row, to = int(rows[at]), int(target[at])
            self._promote(row, int(origin[at]), to, Source.MODEL, growth[at], float(tokens[at]))
            self._shown[row] = to
            self._overlay_bytes[row] = self._sizes[row, to]
        return drafted.size > 0

    def unpack(self) -> None:
        """Entries in hot use go back to plain text while bytes are plenty."""
        if self._rungs[self._rest] is not Rung.PACKED:
            return
        columns = self._columns
        hot = (columns.position == self._rest) & (columns.recalls_last_stage >= _HOT_RECALLS)
        rows = np.flatnonzero(hot)
        growth = self._sizes[rows, 0] - self._sizes[rows, self._rest]
        ties = self._latest_first(rows)
        order = np.lexsort((*ties, -_worth(columns.value[rows]), -columns.recalls_last_stage[rows]))
        # The last fifth of the budget is out of reach.
        room = self._headroom - (1.0 - _UNPACK_SHARE) * self._caps.budget_bytes
        choice, _ = _greedy(growth[order][:, None], np.zeros(rows.size), (room, 0.0))
        for at in order[choice >= 0].tolist():
            self._promote(int(rows[at]), self._rest, 0, Source.UNPACK, growth[at])

    def _next_overlay(self) -> Ints:
        """The nearest rung above what is shown that an overlay may take; -1 where there is none."""
        base = self._columns.position
        target = np.full(base.size, -1, np.int64)
        for k, rung in enumerate(self._rungs[:-1]):
            if rung is not Rung.PACKED:
                target[(k < self._shown) & np.isfinite(self._sizes[:, k])] = k
        # Below an original there is nothing to regenerate; an evicted entry has no residue.
        target[(base <= self._rest) | (base == len(self._rungs) - 1)] = -1
        return target

    def _by_density(self, rows: Ints, gain: Floats, cost: Floats) -> Ints:
        """Order of value * gain / cost, dearest first; at value 0 the cheapest gain first."""
        per_cost = np.divide(gain, cost, out=np.full(rows.size, np.inf), where=cost > 0)
        worth = _worth(self._columns.value[rows])
        density = np.multiply(worth, per_cost, out=np.zeros(rows.size), where=worth > 0)
        recalls = self._columns.recalls_last_stage[rows]
        return np.lexsort((*self._latest_first(rows), -recalls, -per_cost, -density))

    def _latest_first(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """The ties of a sweep turned round: what would sink last rises first (keys last to first)."""
        columns = self._columns
        return -columns.id_rank[rows], -columns.created[rows], -columns.last_recall[rows]

    def _promote(
        self, row: int, origin: int, target: int, source: Source, growth: float, tokens: float = 0.0
    ) -> None:
        number = int(self._columns.number[row])
        promotion = Promotion(number, self._rungs[origin], self._rungs[target], source, float(growth), tokens)
        self.promotions.append(promotion)


def _worth(value: Float32s) -> Floats:
    return np.maximum(np.nan_to_num(value, nan=0.0), 0.0).astype(np.float64)


def _greedy(growth: Floats, cost: Floats, room: tuple[float, float]) -> tuple[Ints, tuple[float, float]]:
    """In the order given, take of each row the first column that fits both rooms (-1 = none does).

    growth: (rows, choices) against room[0]; cost: (rows,) against room[1]. What is left comes back.
    """
    left, purse = room
    choice = np.full(len(cost), -1, np.int64)
    # Most rows fit as they come: take that prefix at once.
    spent, paid = np.cumsum(growth[:, 0]), np.cumsum(cost, dtype=np.float64)
    misfit = np.flatnonzero(~((spent <= left) & (paid <= purse)))
    prefix = int(misfit[0]) if misfit.size else len(cost)
    if prefix:
        choice[:prefix] = 0
        left, purse = left - float(spent[prefix - 1]), purse - float(paid[prefix - 1])
    least = np.minimum.accumulate(growth.min(axis=1)[::-1])[::-1]
    least_cost = np.minimum.accumulate(cost[::-1])[::-1]
    for row in range(prefix, len(cost)):
        if least[row] > left or least_cost[row] > purse:
            break
        if cost[row] > purse:
            continue
        fits = np.flatnonzero(growth[row] <= left)
        if fits.size:
            choice[row] = fits[0]
            left, purse = left - float(growth[row, fits[0]]), purse - float(cost[row])
    return choice, (left, purse)
