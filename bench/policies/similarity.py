"""Cosine between texts without a model: hashed word counts, in place of the re-created systems' embedders.

Deterministic, free of charge like every in-memory index (a function of the texts), labelled in reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from edge_agent.search import terms

NAME = "hashed words (stand-in for an embedder)"
WIDTH = 512
Floats = NDArray[np.float32]


class Similarity:
    """Unit vectors of texts by key, and their cosines with another text."""

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._place: dict[int, int] = {}
        self._matrix: Floats = np.zeros((64, WIDTH), np.float32)

    def put(self, key: int, text: str) -> None:
        """Add or replace."""
        place = self._place.get(key)
        if place is None:
            place = len(self._keys)
            if place == len(self._matrix):
                self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
            self._keys.append(key)
            self._place[key] = place
        self._matrix[place] = vector(text)

    def remove(self, key: int) -> None:
        """Forget one; an unknown key is fine."""
        place = self._place.pop(key, None)
        if place is None:
            return
        last = self._keys.pop()
        if last != key:
            self._keys[place] = last
            self._place[last] = place
            self._matrix[place] = self._matrix[len(self._keys)]

    def nearest(self, text: str, k: int, *, without: frozenset[int] = frozenset()) -> list[tuple[int, float]]:
        """(key, cosine) of at most k, best first; ties go to the smaller key."""
        if not self._keys or k <= 0:
            return []
        cosines = self._matrix[: len(self._keys)] @ vector(text)
        most = k + len(without)
        if most < len(cosines):
            # All that tie with the last one: the smaller keys among them win.
            places = np.flatnonzero(cosines >= np.partition(cosines, -most)[-most]).tolist()
        else:
            places = list(range(len(cosines)))
        pairs = ((self._keys[place], float(cosines[place])) for place in places)
        return sorted((pair for pair in pairs if pair[0] not in without), key=_order)[:k]

    def matrix(self, keys: Sequence[int]) -> Floats:
        """The vectors of these keys, (len(keys), WIDTH)."""
        return self._matrix[[self._place[key] for key in keys]]


@lru_cache(maxsize=65_536)
def vector(text: str) -> Floats:
    """A unit vector, (WIDTH,); zeros for a text without words."""
    counts = np.zeros(WIDTH, np.float32)
    for term in terms(text):
        hashed = int.from_bytes(blake2b(term.encode(), digest_size=4).digest(), "little")
        counts[hashed % WIDTH] += 1.0 if hashed & 0x8000_0000 else -1.0
    counts = np.sign(counts) * np.sqrt(np.abs(counts))
    length = float(np.linalg.norm(counts))
    unit: Floats = counts / length if length else counts
    unit.setflags(write=False)
    return unit


def cosine(one: str, other: str) -> float:
    """Cosine of two texts."""
    return float(vector(one) @ vector(other))


def _order(pair: tuple[int, float]) -> tuple[float, int]:
    return -pair[1], pair[0]
