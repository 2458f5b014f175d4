"""A small BM25 and the reader-free grade: the share of a gold answer's content tokens found in the hits."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

K1, B = 1.2, 0.75  # the usual BM25 constants
HITS = 5
HIT_BYTES = 4096
STOP = frozenset(
    re.findall(
        r"[a-z]+",
        "a an and are as at be been by did do does for from had has have how in into is it its of on or that "
        "the then there they this to was were what when where which while who whose why will with",
    )
)


class Index:
    """BM25 over texts; rebuilt whenever the texts change."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._counts = [Counter(words(text)) for text in texts]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(self._lengths) / max(1, len(texts))
        self._postings: dict[str, list[int]] = {}
        for number, counts in enumerate(self._counts):
            for word in counts:
                self._postings.setdefault(word, []).append(number)

    def ranked(self, query: str, *, without: frozenset[int] = frozenset()) -> list[int]:
        """Numbers of the best texts, best first; ties go to the earlier text."""
        scores: dict[int, float] = {}
        for word in sorted(set(words(query)) - STOP):
            posting = self._postings.get(word, [])
            idf = math.log(1 + (len(self._texts) - len(posting) + 0.5) / (len(posting) + 0.5))
            for number in posting:
                tf = self._counts[number][word]
                norm = K1 * (1 - B + B * self._lengths[number] / self._mean)
                scores[number] = scores.get(number, 0.0) + idf * tf * (K1 + 1) / (tf + norm)
        best = sorted((n for n in scores if n not in without), key=lambda n: (-scores[n], n))
        return best[:HITS]

    def hits(self, query: str, *, without: frozenset[int] = frozenset()) -> list[str]:
        """The best texts, cut to HIT_BYTES in total."""
        left, found = HIT_BYTES, []
        for number in self.ranked(query, without=without):
            cut = self._texts[number].encode()[:left].decode(errors="ignore")
            left -= len(cut.encode())
            found.append(cut)
        return found


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def content_tokens(text: str) -> set[str]:
    return set(words(text)) - STOP


def share_found(gold: str, hits: Iterable[str]) -> float:
    """g: the share of the gold answer's content tokens found in the hits."""
    wanted = content_tokens(gold)
    return len(wanted & content_tokens(" ".join(hits))) / len(wanted) if wanted else 0.0
