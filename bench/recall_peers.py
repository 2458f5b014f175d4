"""Rankings that our recall is compared with: plain BM25, and vectors at full and reduced width."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shared.memory.vectors import Rotation

Scores = NDArray[np.float64]
Vectors = NDArray[np.float32]

# As in the measurement that the reference figures come from.
REFERENCE_OFFSET = 20
_K1, _B = 1.2, 0.75
_STOP_WORDS = (
    "a an the is are was were did does do what when where who how which of to in on at for with and or his"
    " her their s has have had that this it be by from"
)
_STOP = frozenset(re.findall(r"[a-z]+", _STOP_WORDS))


class Bm25:
    """BM25 over words without stop words, no stemming."""

    def __init__(self, texts: Sequence[str]) -> None:
        documents = [_words(text) for text in texts]
        self._count = len(documents)
        mean = sum(map(len, documents)) / max(self._count, 1)
        found = Counter(word for words in documents for word in set(words))
        self._idf = {word: math.log(1 + (self._count - n + 0.5) / (n + 0.5)) for word, n in found.items()}
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, words in enumerate(documents):
            norm = _K1 * (1 - _B + _B * len(words) / mean)
            for word, n in Counter(words).items():
                self._postings[word].append((place, n * (_K1 + 1) / (n + norm)))

    def scores(self, query: str) -> Scores:
        """One a text."""
        found = np.zeros(self._count)
        for word in set(_words(query)):
            for place, weight in self._postings.get(word, ()):
                found[place] += self._idf[word] * weight
        return found


def int8(vectors: Vectors) -> Vectors:
    """Eight bits a value, one scale a vector."""
    scale = np.abs(vectors).max(1, keepdims=True) / 127
    return np.asarray(np.round(vectors / scale) * scale, np.float32)


def rotated_signs(rotation: Rotation, vectors: Vectors) -> Vectors:
    """One bit a value, as +-1: for a rotated float query."""
    return np.asarray(np.where(rotation.apply(vectors) > 0, 1, -1), np.float32)


def fused(*lists: Scores | Vectors, offset: int = REFERENCE_OFFSET) -> Scores:
    """Reciprocal rank fusion of whole rankings; equal scores by place."""
    total = np.zeros(len(lists[0]))
    for scores in lists:
        ranks = np.empty(len(scores))
        ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
        total += 1 / (offset + ranks)
    return total


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _STOP]
