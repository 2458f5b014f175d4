"""Finds entries and shows them at the fidelity they have. Belongs to the store's thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edge_agent.entries import StoredEntry
from edge_agent.fusion import DEPTH, fuse
from edge_agent.search import LexicalIndex, SearchResult
from edge_agent.store import Store
from shared.errors import IntegrityError
from shared.memory.vectors import Floats

# Damaged entries are skipped; so many more candidates are looked at in their place.
_SPARE_CANDIDATES = 8


@dataclass(frozen=True)
class Shown:
    """One hit: the entry, the part of its text that fits, its score."""

    entry: StoredEntry
    text: str
    truncated: bool
    score: float


@dataclass(frozen=True)
class Found:
    """Hits, best first. damaged: entries that were candidates and failed their check.

    pending: some entries that will have a vector have none yet, and were found by their words alone.
    """

    hits: tuple[Shown, ...]
    shortcut: bool
    damaged: int
    pending: bool = False


class Retrieval:
    """The index over a store's shown texts, its vectors, and bounded answers from both."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._index = LexicalIndex()
        self._index.put_many(store.texts(store.table.numbers().tolist()))

    def refresh(self, numbers: Iterable[int]) -> None:
        """These entries came, went or show another text."""
        wanted = set(numbers)
        live = [number for number in sorted(wanted) if number in self._store.table]
        texts = dict(self._store.texts(live))
        for number in sorted(wanted - texts.keys()):
            self._index.remove(number)
        self._index.put_many(sorted(texts.items()))

    def find(self, query: str, k: int, max_bytes: int, vector: Floats | None = None) -> Found:
        """At most `k` hits of `max_bytes` UTF-8 bytes in all; the last one may be cut.

        vector: the query's; None = by words alone.
        """
        result = self._live(query, k + _SPARE_CANDIDATES, vector)
        hits: list[Shown] = []
        left_bytes, damaged = max_bytes, 0
        for candidate in result.hits:
            if len(hits) == k or left_bytes <= 0:
                break
            try:
                entry = self._store.read(candidate.number)
            except IntegrityError:
                damaged += 1
                self._index.remove(candidate.number)
                continue
            text = cut(entry.text, left_bytes)
            if not text:
                break
            hits.append(Shown(entry, text, len(text) < len(entry.text), candidate.score))
            left_bytes -= len(text.encode())
        pending = vector is not None and self._store.vectors.any_pending()
        return Found(tuple(hits), result.shortcut, damaged, pending)

    def rank(self, query: str, limit: int, vector: Floats | None = None) -> SearchResult:
        """Candidates before any of them is read: `limit` by words alone, DEPTH or more of both together."""
        if vector is None:
            return self._index.search(query, limit)
        depth, vectors = max(limit, DEPTH), self._store.vectors
        return fuse(self._index.search(query, depth), vectors.search(vector, depth), vectors.__contains__)

    def _live(self, query: str, limit: int, vector: Floats | None) -> SearchResult:
        """`rank`, without what went in a job that failed before it could tell the index."""
        while True:
            result = self.rank(query, limit, vector)
            gone = [hit.number for hit in result.hits if hit.number not in self._store.table]
            if not gone:
                return result
            for number in gone:
                self._index.remove(number)

    def close(self) -> None:
        """Free the index."""
        self._index.close()


def cut(text: str, limit_bytes: int) -> str:
    """The longest prefix of at most `limit_bytes` UTF-8 bytes, whole characters only."""
    raw = text.encode()
    return text if len(raw) <= limit_bytes else raw[:limit_bytes].decode("utf-8", "ignore")
