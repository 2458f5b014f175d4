"""The product's retention port on the bench's host: policies that choose whole entries and nothing else.

One object serves both: the edge daemon runs it over its store (shared.ports.Retention), the bench over a
Host. Two things that the port does not carry reach the object here only: who an entry is from, and how well
an answer did. An object without `on_outcome` is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.environments.contract import Item
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row
from shared.ports import RetainedEntry, Retention

_TRAITS = {
    "keep_all": Traits(native_knob="none"),
    "lru": Traits(binary=True),
    "expiry": Traits(binary=True, native_knob="time to live"),
    "random": Traits(binary=True),
    "curator": Traits(binary=True, native_knob="RAM bytes"),
}
_ORIGINS = {
    "keep_all": Origin("keep-all", "the upper bound", "not needed", "nothing: the budget does not bind it"),
    "lru": Origin("LRU", "common practice", "not needed", "no skip-and-continue"),
    "expiry": Origin("expiry", "common practice (Redis, Mem0)", "not needed", "the lifetime is what fits"),
    "random": Origin("random drop", "common practice", "not needed", "an entry is drawn, not a byte"),
    "curator": Origin("CURATOR", "arXiv 2606.25115", "not found", "all constants; the sketch of queries"),
}


@dataclass(frozen=True)
class SourcedEntry(RetainedEntry):
    """source: Item.source (`own`, `peer`, `tool`)."""

    source: str = "own"


class RetentionPolicy:
    """bench.policies.contract.HostPolicy over a retention object."""

    def __init__(self, inner: Retention) -> None:
        self._inner = inner
        self.name = inner.name
        self.budget_exempt = inner.budget_exempt
        self.traits, self.origin = _TRAITS[inner.name], _ORIGINS[inner.name]

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Stored as it comes."""
        row = host.add(item, now)
        self._inner.on_write(_entry(host, row), now)
        return Report()

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """The rows hold the access; the object may count."""
        self._inner.on_read(query, hits, now)
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """To an object that learns from grades."""
        told = getattr(self._inner, "on_outcome", None)
        if told is not None:
            told(hits, g, now)

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Ask until the host fits: what a row frees may be less than its size (links, shared blocks)."""
        report = Report()
        while host.bytes() > budget_bytes:
            entries = [_entry(host, row) for row in host.rows.values()]
            chosen = self._inner.enforce(entries, host.bytes() - budget_bytes, now).evicted
            if not chosen:
                break
            report.evicted += [host.remove(number).item for number in chosen]
        return report


def _entry(host: Host, row: Row) -> SourcedEntry:
    size = float(host.size_bytes(row.number))
    return SourcedEntry(row.number, row.kind, row.created, row.last_access, size, 0.0, row.source)
