"""Human-inspired forgetting: memories lose detail level by level, one way.

Does: importance (recency, frequency, surprise, entities, outcome), a maturation over the first two weeks and
a slow decay say what fades; detail is lost from full text down to a trace, and never comes back; recall
resets the decay.
Source: arXiv 2605.08538 (abstract and public notes; no code found). Weights, maturation and decay are its.
Ours: the levels are the four rungs of CrystalMem's paper ladder, made by the same codec, each from the one
above it, so that only the direction differs; no model is asked. A level that would not be smaller is passed
over. Left out: its deduplication in idle time and its interference between memories. Hours are the stream's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order, merge
from bench.policies.llm import Llm
from edge_agent.distill import PlainDistiller
from shared.memory.model import LADDERS, Rung
from shared.memory.text_codec import TextCodec

RECENCY, FREQUENCY, SURPRISE, ENTITIES, OUTCOME = 0.25, 0.25, 0.20, 0.15, 0.15
DECAY_PER_HOUR = 0.001
MATURES_DAYS, MATURES_PER_DAY = 7.0, 0.5
HALF_LIFE = 200.0  # events
LADDER = LADDERS["paper"]
LEVELS = tuple(spec.rung.name.lower() for spec in LADDER.rungs)
_UNGRADED = 0.5
_GRADE_WEIGHT = 0.3
_ENOUGH_NAMED = 4
_HOUR_S, _DAY_S = 3600.0, 86_400.0
_CODEC = TextCodec(PlainDistiller())


def maturity(age_days: float) -> float:
    """In (0, 1): .03 at birth, a half after a week, above .9 after two."""
    return 1 / (1 + math.exp(-MATURES_PER_DAY * (age_days - MATURES_DAYS)))


class HumanInspired:
    """The ladder, downwards only."""

    name = "human_inspired"
    budget_exempt = False
    traits = Traits(shortens=True, native_knob="activation threshold")
    origin = Origin(
        "Human-Inspired", "arXiv 2605.08538", "not found", "the four levels and their texts; order; no model"
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._time_s = 0.0

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Whole; surprise and entities are those of the original, kept as one number."""
        self._time_s = max(self._time_s, item.time)
        nearest = host.nearest(item.text, 1)
        named = len(extractive.names(item.text)) + len(extractive.values(item.text))
        row = host.add(item, now)
        surprise = 1 - max(0.0, nearest[0][1] if nearest else 0.0)
        row.metadata["inborn"] = f"{SURPRISE * surprise + ENTITIES * min(1.0, named / _ENOUGH_NAMED):.2f}"
        host.touched(row.number)
        return Report()

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """The decay starts again; nothing is written back."""
        for number in hits:
            host.rows[number].recalled_s = self._time_s
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """A running mean of the grades."""
        for number in hits:
            row = host.rows[number]
            before = _UNGRADED if row.outcome is None else row.outcome
            row.outcome = before + _GRADE_WEIGHT * (g - before)

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """The least important fades until it is a trace, then the next; when all are traces, they go."""
        report = Report()
        if host.bytes() <= budget_bytes:
            return report
        order = self.order(host, now)
        for number in order:
            while host.bytes() > budget_bytes and _fade(host, host.rows[number], report):
                pass
        merge(report, evict_in_order(host, order, budget_bytes))
        return report

    def order(self, host: Host, now: int) -> list[int]:
        """Host numbers, what fades first in front."""
        most = max((math.log1p(row.hits) for row in host.rows.values()), default=0.0) or 1.0

        def strength(row: Row) -> float:
            recency = math.pow(0.5, (now - row.last_access) / HALF_LIFE)
            importance = (
                RECENCY * recency
                + FREQUENCY * math.log1p(row.hits) / most
                + OUTCOME * (_UNGRADED if row.outcome is None else row.outcome)
                + float(row.metadata["inborn"])
            )
            mature = maturity((self._time_s - row.time) / _DAY_S)
            told_s = row.time if row.recalled_s is None else row.recalled_s
            return importance * mature * math.exp(-DECAY_PER_HOUR * (self._time_s - told_s) / _HOUR_S)

        rows = sorted(host.rows.values(), key=lambda row: (strength(row), row.created, row.number))
        return [row.number for row in rows]


def _fade(host: Host, row: Row, report: Report) -> bool:
    """One level down, or more where that is what makes it smaller; False: it is as small as it gets."""
    held = Rung[row.rung.upper()]
    for spec in LADDER.rungs[LADDER.index(held) + 1 :]:
        if row.record:
            made = _CODEC.lower(row.record, LADDER, spec.rung)
        else:
            made = _CODEC.drop(row.text, LADDER, spec.rung)
        if len(made.record) < row.text_bytes():
            report.demoted.append((row.item, row.rung, spec.rung.name.lower()))
            row.record, row.text, row.rung = made.record, _CODEC.render(made.record), spec.rung.name.lower()
            host.touched(row.number)
            return True
    return False
