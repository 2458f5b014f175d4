"""Eq. 6 energies and the lower convex hull of each entry's (bytes, energy) points, all entries at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.memory.model import Ladder, Rung, SweepColumns
from shared.memory.utility import utilities

Float32s = NDArray[np.float32]

# Rows worked on at a time: some 25 float32 temporaries of this length stay in a core's L2 cache.
CHUNK = 16_384
_NEVER = np.float32(np.inf)
_INF_BITS = np.int32(0x7F800000)
# Stands above every real size; finite, so that a difference with it is never inf - inf.
ABOVE_ALL = np.float32(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Hull:
    """Moves on the hulls, column layout: [m, i] is entry i's move into ladder position m + 1.

    price: delta eta / delta mu, non-decreasing down an entry's moves; inf where it has no such move.
    freed_bytes: what the move frees, counted from the hull point before it; 0 where there is no move.
    With evictions, the last row is the move into position len(ladder.rungs), "evicted".
    """

    price: Float32s
    freed_bytes: Float32s


def energy(value: Float32s, utility: Float32s, tau: float, tokens: Float32s) -> Float32s:
    """Eq. 6: utility forgone at a rung plus the anticipated cost of buying it back."""
    eta: Float32s = value * (np.float32(1.0) - utility) + np.float32(tau) * tokens
    return eta


def energies(columns: SweepColumns, ladder: Ladder, tau: float) -> Float32s:
    """Eq. 6 for every entry and rung, shape (rungs, entries); inf where a rung is not offered."""
    value = _worth(columns)
    eta = np.empty((len(ladder.rungs), value.size), np.float32)
    kept = utilities(ladder).T
    for position in range(len(ladder.rungs)):
        eta[position] = energy(value, kept[position][columns.kind], tau, columns.tokens[:, position])
        eta[position][~np.isfinite(columns.size_bytes[:, position])] = _NEVER
    return eta


def offered_sizes(size_bytes: Float32s, ladder: Ladder, position: NDArray[np.int8] | None = None) -> Float32s:
    """Sizes with inf where a lossy rung saves less than the ladder's least saving (or is unknown).

    The rung an entry stands on (`position`) is always offered. Column layout (Fortran order), which is
    what `hull` reads fastest.
    """
    sizes = np.array(size_bytes, np.float32, order="F")
    sizes[np.isnan(sizes)] = _NEVER
    if ladder.min_saving > 0.0:
        most = np.float32(1.0 - ladder.min_saving) * sizes[:, ladder.index(Rung.PACKED)]
        for column, spec in enumerate(ladder.rungs):
            if spec.rung.lossy:
                refused = sizes[:, column] > most
                if position is not None:
                    refused &= position != column
                sizes[refused, column] = _NEVER
    return sizes


def guard_limit(ladder: Ladder) -> int:
    """Deepest position a guarded entry may take: SKELETAL, or the last rung above it."""
    return max(k for k, spec in enumerate(ladder.rungs) if spec.rung <= Rung.SKELETAL)


def hull(
    columns: SweepColumns,
    ladder: Ladder,
    tau: float,
    *,
    guarded: NDArray[np.bool_] | None = None,
    evictable: NDArray[np.bool_] | None = None,
) -> Hull:
    """Hull moves from each entry's present position down. Rows `guarded` end at `guard_limit`;
    rows `evictable` may go on to their stub (r = 0, c = 0); None = no row is. Sizes count as whole
    bytes, rounded up: then every sum of them is exact and a plan does not depend on summing order.
    """
    n = columns.value.size
    rungs = len(ladder.rungs)
    moves = rungs - 1 + (evictable is not None)
    price = np.empty((moves, n), np.float32)
    freed = np.empty((moves, n), np.float32)
    limit = guard_limit(ladder)
    size_bytes, tokens, worth = columns.size_bytes.T, columns.tokens.T, _worth(columns)
    kept = utilities(ladder).T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for rows in chunks(n):
            position, value = columns.position[rows], worth[rows]
            size = [np.ceil(size_bytes[k, rows]) for k in range(rungs)]
            kind = columns.kind[rows]
            eta = [energy(value, kept[k][kind], tau, tokens[k, rows]) for k in range(rungs)]
            if guarded is not None:
                for k in range(limit + 1, rungs):
                    size[k] = np.maximum(size[k], barrier(guarded[rows] & (position < k)))
            if evictable is not None:
                size.append(np.maximum(np.ceil(columns.stub_bytes[rows]), barrier(~evictable[rows])))
                eta.append(value)
            _descend(size, eta, position, price[:, rows], freed[:, rows])
    return Hull(price, freed)


def _worth(columns: SweepColumns) -> Float32s:
    """v of Eq. 6 is never negative (and a NaN is worth nothing), so energy never falls down the ladder."""
    worth: Float32s = np.fmax(columns.value, np.float32(0.0))
    return worth


def chunks(rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices of cache-sized runs of rows."""
    return (slice(start, start + size) for start in range(0, rows, size))


def barrier(mask: NDArray[np.bool_]) -> Float32s:
    """inf where the mask is set, else 0: its maximum with an array takes no branch per element.

    A select on a random mask costs a million mispredicted branches, ten times the arithmetic.
    """
    # 0 or -1, widened to all zeros or all ones, cut to the bits of inf.
    bits = np.negative(mask.view(np.int8)).astype(np.int32)
    bits &= _INF_BITS
    return bits.view(np.float32)


def _descend(
    size: list[Float32s], eta: list[Float32s], position: NDArray[np.int8], price: Float32s, freed: Float32s
) -> None:
    """Fill price and freed of one chunk of entries.

    A point lies on the lower hull exactly when the steepest chord into it from above is no steeper
    than the flattest chord from it down; the first of these is then its price. A point that is no
    candidate gets eta = inf and the smallest size above it: chords into it are +inf, from it -inf.
    """
    count = len(size)
    mu, height, present = _candidates(size, eta, position)
    into = [np.full(position.size, -np.inf, np.float32) for _ in range(count)]
    onward = [np.full(position.size, np.inf, np.float32) for _ in range(count)]
    for upper in range(count - 1):
        for lower in range(upper + 1, count):
            chord = (height[lower] - height[upper]) / (mu[upper] - mu[lower])
            np.maximum(into[lower], chord, out=into[lower])
            np.minimum(onward[upper], chord, out=onward[upper])
    # Bytes at the last hull point passed; above every size until the present point is reached.
    held = np.maximum(mu[0], (position != 0) * ABOVE_ALL)
    for k in range(1, count):
        vertex = present[k] & (into[k] <= onward[k])
        moved = vertex & (position < k)
        # Prices are not negative; the clip is for tokens that fall down the ladder, against the contract.
        # fmax: between two points that are no candidates a chord is NaN.
        price[k - 1] = np.maximum(np.fmax(into[k], np.float32(0.0)), barrier(~moved))
        freed[k - 1] = (held - mu[k]) * moved
        held = np.minimum(held, np.maximum(mu[k], ~vertex * ABOVE_ALL))


def _candidates(
    size: list[Float32s], eta: list[Float32s], position: NDArray[np.int8]
) -> tuple[list[Float32s], list[Float32s], list[NDArray[np.bool_]]]:
    """Points at or below the present one that are smaller than all candidates above them."""
    mu: list[Float32s] = []
    height: list[Float32s] = []
    present: list[NDArray[np.bool_]] = []
    smallest = np.full(position.size, ABOVE_ALL, np.float32)
    for k, (bytes_here, eta_here) in enumerate(zip(size, eta, strict=True)):
        offered = np.maximum(bytes_here, barrier(position > k))
        present.append(offered < smallest)
        smallest = np.minimum(offered, smallest)
        mu.append(smallest)
        height.append(np.maximum(eta_here, barrier(~present[k])))
    return mu, height, present
