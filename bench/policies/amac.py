"""A-MAC: a weighted score of five features decides what is admitted at all.

Does: utility (one call), confidence (ROUGE-L with the turns it may come from), novelty, recency and a prior
by type (keywords) are weighed; what scores below the threshold is not stored; what is nearly stored already
replaces the older text.
Source: github.com/GuilinDev/Adaptive_Memory_Admission_Control_LLM_Agents (scorer.py, features/);
arXiv 2603.04549. Weights and threshold are the learned ones.
Ours: eviction by the same score, with recency as it is then; afterwards the threshold is the lowest surviving
score until the budget rises. The turns that utility and confidence look at are the five stored last. What the
agent lived through itself is its own source turn. Hours are the stream's own. An older text is replaced only
where the newer one has all its words: upstream's similarity alone would put statements about different things
over each other, and its own evaluation does not use it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.asking import Asker, facts_of, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order
from bench.policies.llm import Llm

UTILITY, CONFIDENCE, NOVELTY, RECENCY, TYPE = 0.1, 0.1, 0.1, 0.1, 0.6
THRESHOLD = 0.55
SAME = 0.8
TURNS = 5
_UNKNOWN_UTILITY = 0.5
_HOUR_S = 3600.0
_DECAY_PER_HOUR = 0.01
_WORDS_COMPARED = 200
_SCORED = schema(utility={"type": "number", "minimum": 0, "maximum": 1})
_ENOUGH_TOLD = 6
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_UNKNOWN_TYPE = 0.5
# In upstream's order: the first of equal counts decides.
_TYPES: Mapping[str, tuple[float, str]] = {
    "preference": (0.9, "prefer|like|dislike|hate|love|favorite|enjoy|appreciate|avoid|want|wish"),
    "identity": (0.9, "i am|i'm|my name is|called|live in|from|work as|job|profession|nationality|age"),
    "fact": (0.7, "is|are|was|were|always|never|true|false|known|established|defined"),
    "plan": (0.5, "will|going to|plan to|intend to|scheduled|planning|upcoming|future|tomorrow|next"),
    "goal": (0.5, "want to|hope to|aim to|goal|objective|target|aspire|strive"),
    "temporary": (0.2, "currently|right now|at the moment|today|this morning|this afternoon|temporarily"),
}


def type_prior(text: str) -> float:
    """By the type whose keywords are there most; as upstream, anywhere in the text, in words too."""
    folded = text.casefold()
    counts = {name: sum(word in folded for word in words.split("|")) for name, (_, words) in _TYPES.items()}
    best = max(counts, key=counts.__getitem__)
    return _TYPES[best][0] if counts[best] else _UNKNOWN_TYPE


def rouge_l(one: str, other: str) -> float:
    """F1 of the longest common subsequence of words (the first 200 of each)."""
    first, second = (_WORD.findall(text.casefold())[:_WORDS_COMPARED] for text in (one, other))
    if not first or not second:
        return 0.0
    before = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for at, against in enumerate(second):
            row.append(before[at] + 1 if word == against else max(before[at + 1], row[at]))
        before = row
    return 2 * before[-1] / (len(first) + len(second))


def confidence(item: Item, turns: Sequence[str]) -> float:
    """The best support among the turns that share a word; lived experience supports itself."""
    if item.source == "own":
        return 1.0
    told = extractive.words(item.text)
    return max((rouge_l(item.text, turn) for turn in turns if told & extractive.words(turn)), default=0.0)


def _replaces(item: Item, row: Row) -> bool:
    told = extractive.words(item.text) | extractive.values(item.text)
    return row.time <= item.time and told >= extractive.words(row.text) | extractive.values(row.text)


def _useful(prompt: str, wanted: Mapping[str, Any]) -> str:
    """What it names, up to enough."""
    text = facts_of(prompt)["memory"]
    told = len(extractive.names(text)) + len(extractive.values(text))
    return json.dumps({"utility": min(1.0, told / _ENOUGH_TOLD)})


class AMac:
    """Binary; one call a write. The row keeps its score without recency, and its time."""

    name = "amac"
    budget_exempt = False
    traits = Traits(calls_per_write=1, native_knob="admission threshold", binary=True)
    origin = Origin(
        "A-MAC",
        "arXiv 2603.04549; github.com/GuilinDev/Adaptive_Memory_Admission_Control_LLM_Agents",
        "yes",
        "eviction by the score; the threshold follows the budget",
    )

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"utility": _useful})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in
        self.threshold = THRESHOLD
        self._budget_bytes = math.inf
        self._time_s = 0.0

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """Score, then admit, replace or refuse."""
        report = Report()
        self._time_s = max(self._time_s, item.time)
        turns = [row.text for row in list(host.by_age())[-TURNS:]]
        found = self._asker.ask(
            report,
            "utility",
            "How likely will this memory be of use later, from 0 to 1?",
            _SCORED,
            memory=item.text,
            turns=turns,
        )
        nearest = host.nearest(item.text, 1)
        lasting = (
            UTILITY * (found["utility"] if found else _UNKNOWN_UTILITY)
            + CONFIDENCE * confidence(item, turns)
            + NOVELTY * (1 - max(0.0, nearest[0][1] if nearest else 0.0))
            + TYPE * type_prior(item.text)
        )
        if lasting + RECENCY < self.threshold:
            report.evicted.append(item.id)
            return report
        if nearest and nearest[0][1] >= SAME and _replaces(item, host.rows[nearest[0][0]]):
            report.merged.append(host.remove(nearest[0][0]).item)
        row = host.add(item, now)
        row.metadata["score"] = f"{lasting:.3f}"
        host.touched(row.number)
        return report

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """Nothing: what was admitted is not judged again by use."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Delete ascending; what survives is the new bar, until there is more room."""
        if budget_bytes > self._budget_bytes:
            self.threshold = THRESHOLD
        self._budget_bytes = budget_bytes
        if host.bytes() <= budget_bytes:
            return Report()
        ranked = sorted(host.rows.values(), key=lambda row: (self._score(row), row.created, row.number))
        report = evict_in_order(host, [row.number for row in ranked], budget_bytes)
        left = min((self._score(row) for row in host.rows.values()), default=THRESHOLD)
        self.threshold = max(THRESHOLD, left)
        return report

    def _score(self, row: Row) -> float:
        age_h = (self._time_s - row.time) / _HOUR_S
        return float(row.metadata["score"]) + RECENCY * math.exp(-_DECAY_PER_HOUR * age_h)
