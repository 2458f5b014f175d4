"""The crystallization front: which moves, cheapest first, free enough bytes. Selected, not sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.memory.energy import chunks

Float32s = NDArray[np.float32]
Weights = NDArray[np.floating]
Keys = NDArray[np.unsignedinteger]
Ties = Sequence[NDArray[np.integer]]

# 16 bits a pass: a histogram of 65,536 doubles stays in the L2 cache.
_DIGIT_BITS = 16
_DIGIT = (1 << _DIGIT_BITS) - 1


@dataclass(frozen=True)
class Front:
    """What lies below the front. taken[m, i]: entry i makes its move m. level: the last price paid."""

    taken: NDArray[np.bool_]
    level: float
    freed_bytes: float


def advance(price: Float32s, freed_bytes: Float32s, need_bytes: float, ties: Ties) -> Front:
    """Take moves by (price, ties..., row, move) ascending until `need_bytes` are free.

    The taken set is that of a stable full sort. Prices are >= 0, inf = no such move, and never fall
    along one row's moves, so what a row takes is a prefix of its moves. `ties` are per row.
    """
    # Non-negative floats sort as their bit patterns do.
    bits = np.ascontiguousarray(price).view(np.uint32).reshape(-1)
    cut = weighted_cut(bits, freed_bytes.reshape(-1), need_bytes)
    if cut is None:
        taken = np.isfinite(price)
        level = float(price.max(where=taken, initial=0.0))
        return Front(taken, level, float(freed_bytes.sum(dtype=np.float64)))
    level_price = np.uint32(cut.key).view(np.float32)
    tied, freed_by_ties = _first_of_ties(price == level_price, freed_bytes, need_bytes - cut.below, ties)
    return Front((price < level_price) | tied, float(level_price), cut.below + freed_by_ties)


@dataclass(frozen=True)
class Cut:
    """Smallest key at which the weight of all keys up to it reaches what is needed."""

    key: int
    below: float
    """Weight of the keys strictly under `key`."""


def weighted_cut(keys: Keys, weight: Weights, need: float) -> Cut | None:
    """Weighted radix select, most significant digit first; None when all keys together fall short."""
    if keys.size == 0:
        return None
    below = 0.0
    key = 0
    top = max(int(keys.max()).bit_length() - 1, 0) // _DIGIT_BITS * _DIGIT_BITS
    for shift in range(top, -1, -_DIGIT_BITS):
        histogram = _histogram(keys, weight, shift)
        reached = below + np.cumsum(histogram)
        digit = int(np.searchsorted(reached, need, side="left"))
        if digit > _DIGIT:
            if shift == top:
                return None
            # Only a rounded sum falls short here: the digit pass before it reached what is needed.
            digit = int(np.flatnonzero(histogram)[-1])
        below = float(reached[digit - 1]) if digit else below
        key = key << _DIGIT_BITS | digit
        if shift:
            inside = np.flatnonzero(keys >> keys.dtype.type(shift) == key)
            keys, weight = keys[inside], weight[inside]
            if (least := keys.min()) == keys.max():
                # A million moves at price 0 need no second look.
                return Cut(int(least), below)
    return Cut(key, below)


def _histogram(keys: Keys, weight: Weights, shift: int) -> NDArray[np.float64]:
    total = np.zeros(_DIGIT + 1, np.float64)
    # Keys are widened to int64 for counting; by chunks the wide copies never leave the cache.
    for part in chunks(keys.size, 1 << _DIGIT_BITS):
        digit = (keys[part] >> keys.dtype.type(shift)) & keys.dtype.type(_DIGIT)
        total += np.bincount(digit.astype(np.int64), weights=weight[part], minlength=_DIGIT + 1)
    return total


def _first_of_ties(
    tied: NDArray[np.bool_], freed_bytes: Float32s, need: float, ties: Ties
) -> tuple[NDArray[np.bool_], float]:
    """Of the moves at one price, those that come first: whole rows, then a prefix of one row's moves."""
    weight = np.empty(tied.shape[1], np.float32)
    for part in chunks(weight.size):
        weight[part] = (freed_bytes[:, part] * tied[:, part]).sum(axis=0)
    contested = np.flatnonzero(tied.any(axis=0))
    chosen = np.zeros(weight.size, np.bool_)
    freed = 0.0
    for key in ties:
        rank = _as_unsigned(key[contested])
        cut = weighted_cut(rank, weight[contested], need - freed) if rank.any() else None
        if cut is not None:
            chosen[contested[rank < cut.key]] = True
            contested = contested[rank == cut.key]
            freed += cut.below
    # Rows equal in every key go by row number.
    reached = freed + np.cumsum(weight[contested], dtype=np.float64)
    last = int(np.searchsorted(reached, need, side="left"))
    chosen[contested[:last]] = True
    freed = float(reached[last - 1]) if last else freed
    taken = tied & chosen
    if last < contested.size:
        row = contested[last]
        for move in np.flatnonzero(tied[:, row]):
            if freed < need:
                taken[move, row] = True
                freed += float(freed_bytes[move, row])
    return taken, freed


def _as_unsigned(key: NDArray[np.integer]) -> Keys:
    """Order-preserving, counted from the smallest so that few digits are in use."""
    # Wrap-around subtraction is exact for any two int64.
    offset: NDArray[np.uint64] = key.astype(np.uint64) - np.uint64(int(key.min()) % 2**64)
    return offset
