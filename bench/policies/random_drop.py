"""Random drop: whoever is drawn goes, each entry as likely as any other."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bench.policies.in_order import evicted_in
from shared.ports import EvictionReport, RetainedEntry


class RandomDrop:
    """Binary; a draw is per entry, not per byte. Each squeeze draws anew, so age does not matter."""

    name = "random"
    budget_exempt = False

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def on_write(self, entry: RetainedEntry, now: int) -> None:
        """Nothing to keep."""

    def on_read(self, query: str, hits: Sequence[int], now: int) -> None:
        """Nothing to keep."""

    def enforce(self, entries: Sequence[RetainedEntry], excess_bytes: float, now: int) -> EvictionReport:
        """Draw without replacement until the excess is covered."""
        if excess_bytes <= 0:
            return EvictionReport()
        drawn = sorted(entries, key=lambda entry: entry.number)
        self._rng.shuffle(drawn)
        return evicted_in(drawn, excess_bytes)
