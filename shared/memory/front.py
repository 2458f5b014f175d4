"""The crystallization front: which moves, cheapest first, free enough bytes. Selected, not sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Weights = NDArray[np.floating]
Keys = NDArray[np.unsignedinteger]
Ties = Sequence[NDArray[np.integer]]

# 16 bits a pass: a histogram of 65,536 doubles stays in the L2 cache.
_DIGIT_BITS = 16
_DIGIT = (1 << _DIGIT_BITS) - 1
# Keys are widened to int64 for counting; by chunks the wide copies never leave the cache.
_CHUNK = 1 << 16


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
    weight = np.ascontiguousarray(freed_bytes).reshape(-1)
    cut = weighted_cut(bits, weight, need_bytes)
    if cut is None:
        taken = np.isfinite(price)
        level = float(price.max(where=taken, initial=0.0))
        return Front(taken, level, float(freed_bytes.sum(dtype=np.float64)))
    level_price = np.uint32(cut.key).view(np.float32)
    taken = price < level_price
    at_level = np.flatnonzero(bits == np.uint32(cut.key))
    chosen = _among_ties(at_level, price.shape[1], weight, need_bytes - cut.below, ties)
    taken.reshape(-1)[chosen] = True
    freed = cut.below + float(weight[chosen].sum(dtype=np.float64))
    return Front(taken, float(level_price), freed)


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
    return Cut(key, below)


def _histogram(keys: Keys, weight: Weights, shift: int) -> NDArray[np.float64]:
    total = np.zeros(_DIGIT + 1, np.float64)
    for start in range(0, keys.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        digit = (keys[part] >> keys.dtype.type(shift)) & keys.dtype.type(_DIGIT)
        total += np.bincount(digit.astype(np.int64), weights=weight[part], minlength=_DIGIT + 1)
    return total


def _among_ties(
    at_level: NDArray[np.int64], rows: int, weight: Float32s, need: float, ties: Ties
) -> NDArray[np.int64]:
    """Of the moves at the front's own price, those that come first: whole rows, then one row's prefix."""
    row = at_level % rows
    row_weight = np.bincount(row, weights=weight[at_level], minlength=rows).astype(np.float64)
    contested = np.flatnonzero(np.bincount(row, minlength=rows))
    settled = []
    for key in ties:
        if contested.size < 2:
            break
        rank = _as_unsigned(key[contested])
        cut = weighted_cut(rank, row_weight[contested], need)
        if cut is None:
            break
        settled.append(contested[rank < cut.key])
        contested = contested[rank == cut.key]
        need -= cut.below
    reached = np.cumsum(row_weight[contested])
    last = int(np.searchsorted(reached, need, side="left"))
    settled.append(contested[:last])
    chosen = np.zeros(rows, np.bool_)
    chosen[np.concatenate(settled)] = True
    whole = at_level[chosen[row]]
    if last == contested.size:
        return whole
    # Flat indexes of one row ascend in ladder order.
    own = at_level[row == contested[last]]
    need -= float(reached[last - 1]) if last else 0.0
    enough = int(np.searchsorted(np.cumsum(weight[own], dtype=np.float64), need, side="left"))
    return np.concatenate([whole, own[: enough + 1]])


def _as_unsigned(key: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Order-preserving, counted from the smallest so that few digits are in use."""
    # Wrap-around subtraction is exact for any two int64.
    offset: NDArray[np.uint64] = key.astype(np.uint64) - np.uint64(int(key.min()) % 2**64)
    return offset
