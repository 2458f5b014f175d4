"""LRU: what was written or recalled longest ago goes first, strictly in that order."""

from __future__ import annotations

from collections.abc import Sequence

from bench.policies.in_order import evicted_in
from shared.ports import EvictionReport, RetainedEntry


class Lru:
    """Binary and stateless: the row's `last_access`, which the store charges, is all that it needs.

    The store sets `last_access` at a write and on every hit that was given to the host.
    """

    name = "lru"
    budget_exempt = False

    def on_write(self, entry: RetainedEntry, now: int) -> None:
        """The row holds the access."""

    def on_read(self, query: str, hits: Sequence[int], now: int) -> None:
        """The rows hold the access."""

    def enforce(self, entries: Sequence[RetainedEntry], excess_bytes: float, now: int) -> EvictionReport:
        """Evict in ascending last access until the excess is covered."""
        return evicted_in(sorted(entries, key=_order), excess_bytes)


def _order(entry: RetainedEntry) -> tuple[int, int, int]:
    return entry.last_access, entry.created, entry.number
