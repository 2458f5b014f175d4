"""Expiry: an entry lives for a time, and no read prolongs it."""

from __future__ import annotations

from collections.abc import Sequence

from bench.policies.in_order import evicted_in
from shared.ports import EvictionReport, RetainedEntry


class Expiry:
    """Binary and stateless. Under a budget the lifetime is the longest one whose survivors fit.

    That is the same as deleting what was created first. Expired entries are gone, not hidden.
    """

    name = "expiry"
    budget_exempt = False

    def on_write(self, entry: RetainedEntry, now: int) -> None:
        """The row holds its creation."""

    def on_read(self, query: str, hits: Sequence[int], now: int) -> None:
        """A read does not extend a life."""

    def enforce(self, entries: Sequence[RetainedEntry], excess_bytes: float, now: int) -> EvictionReport:
        """Evict in order of creation until the excess is covered."""
        return evicted_in(sorted(entries, key=_order), excess_bytes)


def _order(entry: RetainedEntry) -> tuple[int, int]:
    return entry.created, entry.number
