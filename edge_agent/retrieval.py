"""Finds entries and shows them at the fidelity they have. Belongs to the store's thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edge_agent.entries import StoredEntry
from edge_agent.search import LexicalIndex
from edge_agent.store import Store
from shared.errors import IntegrityError

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
    """Hits, best first. damaged: entries that were candidates and failed their check."""

    hits: tuple[Shown, ...]
    shortcut: bool
    damaged: int


class Retrieval:
    """The index over a store's shown texts, and bounded answers from it."""

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

    def find(self, query: str, k: int, max_bytes: int) -> Found:
        """At most `k` hits of `max_bytes` UTF-8 bytes in all; the last one may be cut."""
        result = self._index.search(query, k + _SPARE_CANDIDATES)
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
        return Found(tuple(hits), result.shortcut, damaged)

    def close(self) -> None:
        """Free the index."""
        self._index.close()


def cut(text: str, limit_bytes: int) -> str:
    """The longest prefix of at most `limit_bytes` UTF-8 bytes, whole characters only."""
    raw = text.encode()
    return text if len(raw) <= limit_bytes else raw[:limit_bytes].decode("utf-8", "ignore")
