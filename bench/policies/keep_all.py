"""Keep-all: the upper bound. Nothing ever goes, and it says so with `budget_exempt`."""

from __future__ import annotations

from collections.abc import Sequence

from shared.ports import EvictionReport, RetainedEntry


class KeepAll:
    """Append everything; the budget does not bind it."""

    name = "keep_all"
    budget_exempt = True

    def on_write(self, entry: RetainedEntry, now: int) -> None:
        """Nothing to keep."""

    def on_read(self, query: str, hits: Sequence[int], now: int) -> None:
        """Nothing to keep."""

    def enforce(self, entries: Sequence[RetainedEntry], excess_bytes: float, now: int) -> EvictionReport:
        """Never evicts."""
        return EvictionReport()
