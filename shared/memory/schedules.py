"""Other orders in which a squeeze may make its moves, to be compared with the hulls of Eq. 7.

Each is a `crystallize.Moves`: it prices every step of every row, and the front takes the cheapest. A
row's steps are taken one after the other, so a step costs at least what the steps before it did: that is
what popping the cheapest offer again and again, as Algorithm 1 does, comes to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared.memory.crystallize import Mask
from shared.memory.energy import Hull, energies, guard_limit
from shared.memory.model import Ladder, SweepColumns

Float32s = NDArray[np.float32]
# splitmix64 (public domain, Sebastiano Vigna): a number's bits, well mixed.
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_A = 0xBF58476D1CE4E5B9
_MIX_B = 0x94D049BB133111EB
_MASK = 0xFFFFFFFFFFFFFFFF


def rung_by_rung(
    columns: SweepColumns,
    ladder: Ladder,
    tau: float,
    *,
    guarded: Mask | None = None,
    evictable: Mask | None = None,
) -> Hull:
    """Algorithm 1 as it is written: one rung at a time by d eta / d mu, whatever lies further down."""
    steps = _Steps(columns, ladder, tau, guarded, evictable)
    with np.errstate(divide="ignore", invalid="ignore"):
        return steps.priced(np.maximum(steps.rise / steps.freed, np.float32(0.0)))


def size_greedy(
    columns: SweepColumns,
    ladder: Ladder,
    tau: float,
    *,
    guarded: Mask | None = None,
    evictable: Mask | None = None,
) -> Hull:
    """The step that frees most bytes first, whatever it costs."""
    steps = _Steps(columns, ladder, tau, guarded, evictable)
    with np.errstate(divide="ignore"):
        return steps.priced(np.float32(1.0) / steps.freed)


class Shuffled:
    """Steps in an order by chance, the same for the same seed, entry and rung however often it is planned."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(
        self,
        columns: SweepColumns,
        ladder: Ladder,
        tau: float,
        *,
        guarded: Mask | None = None,
        evictable: Mask | None = None,
    ) -> Hull:
        steps = _Steps(columns, ladder, tau, guarded, evictable)
        drawn = [chance(columns.number, self._seed + rung) for rung in range(len(steps.freed))]
        return steps.priced(np.stack(drawn).astype(np.float32))


def chance(numbers: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each entry number, by chance and yet always the same."""
    mixed = numbers.astype(np.uint64) + np.uint64((seed * _GOLDEN) & _MASK)
    mixed = (mixed + np.uint64(_GOLDEN)).astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_MIX_A)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_MIX_B)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) / 2.0**53, np.float64)


class _Steps:
    """Each row's way down from where it stands, through every smaller rung that is offered.

    rise, freed: d eta and d mu of each step, layout as in energy.Hull; freed 0 where there is no step.
    """

    def __init__(
        self,
        columns: SweepColumns,
        ladder: Ladder,
        tau: float,
        guarded: Mask | None,
        evictable: Mask | None,
    ) -> None:
        sizes = [np.ceil(column) for column in columns.size_bytes.T]
        heights = list(energies(columns, ladder, tau))
        if guarded is not None:
            for k in range(guard_limit(ladder) + 1, len(sizes)):
                sizes[k] = np.where(guarded & (columns.position < k), np.float32(np.inf), sizes[k])
        if evictable is not None:
            sizes.append(np.where(evictable, np.ceil(columns.stub_bytes), np.float32(np.inf)))
            heights.append(np.fmax(columns.value, np.float32(0.0)))
        shape = (len(sizes) - 1, columns.value.size)
        self.freed = np.zeros(shape, np.float32)
        self.rise = np.zeros(shape, np.float32)
        rows = np.arange(columns.value.size)
        here = np.minimum(columns.position, len(sizes) - 1)
        held = np.stack(sizes)[here, rows]
        height = np.stack(heights)[here, rows]
        for k in range(1, len(sizes)):
            steps = (columns.position < k) & (sizes[k] < held)
            self.freed[k - 1, steps] = (held - sizes[k])[steps]
            self.rise[k - 1, steps] = (heights[k] - height)[steps]
            held, height = np.where(steps, sizes[k], held), np.where(steps, heights[k], height)

    def priced(self, price: Float32s) -> Hull:
        """The steps at these prices; a step that is none costs everything."""
        there = self.freed > 0
        reached = np.maximum.accumulate(np.where(there, price, np.float32(0.0)), axis=0)
        return Hull(np.where(there, reached, np.float32(np.inf)).astype(np.float32), self.freed)
