"""Eviction by an order, shared by every policy that is one."""

from __future__ import annotations

from collections.abc import Iterable

from shared.ports import EvictionReport, RetainedEntry


def evicted_in(order: Iterable[RetainedEntry], excess_bytes: float) -> EvictionReport:
    """From the first on, until the excess is covered.

    No skip-and-continue: stepping over an entry because a later one fits better is a knapsack rule.
    """
    freed = 0.0
    evicted: list[int] = []
    for entry in order:
        if freed >= excess_bytes:
            break
        evicted.append(entry.number)
        freed += entry.size_bytes
    return EvictionReport(evicted=tuple(evicted))
