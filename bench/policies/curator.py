"""CURATOR: whole entries are kept by what they are expected to be worth, less what they may harm, a byte.

Does: the chance that an entry is retrieved (from a sketch of recent queries) times what it adds to answers,
plus a gain for abstractions, less the harm of a source that is not trusted; the least a byte goes first.
Source: arXiv 2606.25115 (abstract and public notes; no code found).
Ours: every constant. The gain of an abstraction counts as often as it is retrieved: by itself it would
outweigh all that was observed. The sketch is exponential with a window of 100 queries. An entry is judged by
the queries it has lived through only, which is its grace: not recalled yet, it counts as likely as any other.
Its four numbers take the place of creation, recall count, last recall and influence in the columns that the
meter charges for every row. The paper's SHARE decision and its extra answers for self-consistency are left
out: there is one board, and outcomes are observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.policies.in_order import evicted_in
from shared.memory.model import Kind
from shared.ports import EvictionReport, RetainedEntry

WINDOW = 100
"""Queries: what the sketch remembers."""
EPSILON = 0.05
"""Utility of an entry that no outcome speaks for."""
ABSTRACTION_GAIN = 0.1
TRUST: Mapping[str, float] = {"own": 1.0, "peer": 0.5, "tool": 0.1}
ABSTRACTIONS = frozenset({Kind.SKILL, Kind.WORKFLOW, Kind.KNOWLEDGE})
_FADE = 1 - 1 / WINDOW


@dataclass
class Sketch:
    """Sums that fade with every query. born, at: query numbers; graded, grades: outcomes it was part of."""

    born: int = 0
    at: int = 0
    hits: float = 0.0
    graded: float = 0.0
    grades: float = 0.0

    def faded(self, query: int) -> Sketch:
        """Itself, as of this query."""
        share = _FADE ** (query - self.at)
        self.hits *= share
        self.graded *= share
        self.grades *= share
        self.at = query
        return self


class Curator:
    """Binary: an entry is whole or gone."""

    name = "curator"
    budget_exempt = False

    def __init__(self) -> None:
        self._queries = 0
        self._all = Sketch()
        self._of: dict[int, Sketch] = {}

    def on_write(self, entry: RetainedEntry, now: int) -> None:
        """Admitted; if it is worth the least, it is the first to go."""
        self._of[entry.number] = Sketch(self._queries, self._queries)

    def on_read(self, query: str, hits: Sequence[int], now: int) -> None:
        """One query for the sketch."""
        self._queries += 1
        for number in hits:
            self._seen(number).hits += 1

    def on_outcome(self, hits: Sequence[int], g: float, now: int) -> None:
        """A grade in [0, 1] for the answer that these entries were given to."""
        for sketch in (self._all.faded(self._queries), *map(self._seen, hits)):
            sketch.graded += 1
            sketch.grades += g

    def enforce(self, entries: Sequence[RetainedEntry], excess_bytes: float, now: int) -> EvictionReport:
        """Evict by ascending score, then age; what is gone is forgotten."""
        living = {entry.number for entry in entries}
        self._of = {number: sketch for number, sketch in self._of.items() if number in living}
        ranked = sorted(entries, key=lambda e: (self.score(e, len(entries)), e.created, e.number))
        report = evicted_in(ranked, excess_bytes)
        for number in report.evicted:
            self._of.pop(number, None)
        return report

    def score(self, entry: RetainedEntry, entries: int) -> float:
        """(value - harm) a byte, of one among so many entries."""
        propensity = self.propensity(entry.number, entries)
        gain = ABSTRACTION_GAIN if entry.kind in ABSTRACTIONS else 0.0
        harm = 1 - TRUST[getattr(entry, "source", "own")]
        return propensity * (max(self.utility(entry.number), EPSILON) + gain - harm) / entry.size_bytes

    def propensity(self, number: int, entries: int) -> float:
        """Chance that a query retrieves it: smoothed share of the queries that it has lived through."""
        sketch = self._seen(number)
        lived = (1 - _FADE ** (self._queries - sketch.born)) / (1 - _FADE)
        return (sketch.hits + 1) / (lived + entries)

    def utility(self, number: int) -> float:
        """Mean grade with it less the mean without it, in [-1, 1]; drawn to 0 where few outcomes speak."""
        one, every = self._seen(number), self._all.faded(self._queries)
        others = every.graded - one.graded
        if one.graded <= 0 or others <= 0.5:
            return 0.0
        difference = one.grades / one.graded - (every.grades - one.grades) / others
        return max(-1.0, min(1.0, difference)) * one.graded / (one.graded + 1)

    def _seen(self, number: int) -> Sketch:
        return self._of.setdefault(number, Sketch(self._queries, self._queries)).faded(self._queries)
