"""Rotated binary codes of vectors: width/8 bytes each, a float query against bits (spec.md 3).

The rotation is made of signs, permutations and Hadamard butterflies from an explicitly defined integer
hash. No library's generator and no factorisation takes part, so that codes on disk mean the same on
every machine and with every version of numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.uint8]

# Part of the format: another value is another rotation, and old codes mean nothing.
_SEED = 0x43525953_54414C31
# A block of 128 of 384 values is mixed with the others by the permutation between rounds: after three
# rounds every value depends on every other.
_ROUNDS = 3
_BITS = 8
_BYTE_VALUES = 256
# Scores of so many entries at once: 2 MB of scratch whatever the store's size.
_CHUNK = 65_536


@dataclass(frozen=True)
class Signature:
    """Which vectors may be compared: same model, width, pooling and prefixes."""

    model: str
    width: int
    pooling: str
    query_prefix: str = ""
    passage_prefix: str = ""
    weights: str = ""
    """The beginning of their SHA-256: another model may come under the same name."""


@dataclass(frozen=True)
class _Round:
    order: NDArray[np.int64]
    sign: Floats


class Rotation:
    """One fixed orthogonal map of a width, a multiple of 8."""

    def __init__(self, width: int) -> None:
        if width < _BITS or width % _BITS:
            raise ValueError(f"a vector's width is a multiple of {_BITS}, not {width}")
        self.width = width
        self._block = width & -width
        self._rounds = tuple(_round(width, number) for number in range(_ROUNDS))
        self._scale = np.float32(self._block ** (-0.5 * _ROUNDS))

    def apply(self, vectors: Floats) -> Floats:
        """Rotated rows, (n, width): lengths and angles stay."""
        rows = np.asarray(vectors, np.float32)
        for step in self._rounds:
            rows = _hadamard(rows[:, step.order] * step.sign, self._block)
        return np.asarray(rows * self._scale, np.float32)


def encode(rotation: Rotation, vectors: Floats) -> Codes:
    """The sign of every rotated value, (n, width / 8)."""
    return np.packbits(rotation.apply(vectors) > 0, axis=1, bitorder="little")


def bits(codes: Codes) -> NDArray[np.int64]:
    """How many of the codes, (n, width / 8), have each bit set, (width,)."""
    return np.asarray(np.unpackbits(codes, axis=1, bitorder="little").sum(0, dtype=np.int64))


def centred(rotated: Floats, ones: NDArray[np.int64], count: int) -> Floats:
    """A rotated unit query less the mean of the stored vectors, as their own bits tell it.

    Texts of one store share much (its people, its tone), and codes near that shared part are near every
    query. For values spread normally around a mean, the share of set bits gives the mean; nothing is stored.
    A mean of few vectors is mostly their own noise: so much of it as chance would give is left out.
    """
    if count < 2:
        return rotated
    tilt = 2.0 * ones / count - 1.0
    found, noise = float((tilt**2).sum()), float((1.0 - tilt**2).sum()) / (count - 1)
    tilt *= max(1.0 - noise / found, 0.0) if found else 0.0
    # |m|^2 / (1 - |m|^2), by E[sign] = sqrt(2 / pi) m / sigma and sigma^2 = (1 - |m|^2) / width.
    odds = float((tilt**2).sum()) * np.pi / 2 / len(tilt)
    sigma = np.sqrt(1.0 / (1.0 + odds) / len(tilt))
    return np.asarray(rotated - tilt * sigma * np.sqrt(np.pi / 2), np.float32)


def scores(rotated: Floats, codes_by_byte: Codes) -> Floats:
    """Sum of a rotated query's values with each entry's signs, (n,). `codes_by_byte`: (width / 8, n)."""
    tables = _tables(rotated)
    found = np.empty(codes_by_byte.shape[1], np.float32)
    for start in range(0, len(found), _CHUNK):
        part = codes_by_byte[:, start : start + _CHUNK]
        total = np.zeros(part.shape[1], np.float32)
        for table, column in zip(tables, part, strict=True):
            total += np.take(table, column)
        found[start : start + _CHUNK] = total
    return found


def top(found: Floats, numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Places of the highest scores, best first; equal scores by number."""
    if count < len(found):
        least = np.partition(found, len(found) - count)[len(found) - count]
        places = np.flatnonzero(found >= least)
    else:
        places = np.arange(len(found))
    order = np.lexsort((numbers[places], -found[places]))
    return np.asarray(places[order][:count], np.int64)


def _tables(rotated: Floats) -> Floats:
    """What each value of each byte adds to a score, (width / 8, 256)."""
    values = np.arange(_BYTE_VALUES, dtype=np.uint8)[:, None]
    signs = np.unpackbits(values, axis=1, bitorder="little").astype(np.float32) * 2 - 1
    return np.asarray(rotated.reshape(-1, _BITS) @ signs.T, np.float32)


def _hadamard(rows: Floats, block: int) -> Floats:
    """Butterflies within blocks of a power of two, unscaled."""
    size = rows.shape
    half = 1
    while half < block:
        pairs = rows.reshape(size[0], -1, 2, half)
        rows = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), 2).reshape(size)
        half *= 2
    return rows


def _round(width: int, number: int) -> _Round:
    hashed = _splitmix64(np.uint64(_SEED + number) + np.arange(width, dtype=np.uint64) * np.uint64(1 << 32))
    sign = np.where(hashed & np.uint64(1), np.float32(1), np.float32(-1))
    return _Round(np.argsort(hashed, kind="stable"), sign.astype(np.float32))


def _splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)
