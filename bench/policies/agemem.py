"""AgeMem, frozen: one learned action a write, ADD, UPDATE, DELETE or nothing.

Does: an agent trained with reinforcement writes to its long-term memory through tools (ADD, UPDATE, DELETE)
and to its context through others (RETRIEVE, SUMMARY, FILTER), which a retention policy has no part in.
Source: arXiv 2601.01885 (full text; no official code or weights found).
Ours: the frozen policy. With a model, it is a prompt with the tools and fixed examples; without, a logistic
score of five features with coefficients set by hand once, and never per environment: novelty, type prior,
length, density of names and values, contradiction with the nearest. Its threshold refuses what says next to
nothing, since the trained policy nearly always adds (1.6 ADD, .13 UPDATE, .08 DELETE an episode). Eviction:
ascending score, then oldest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bench.environments.contract import Item
from bench.policies import extractive
from bench.policies.amac import type_prior
from bench.policies.asking import INTEGER, STRING, Asker, facts_of, offered, schema
from bench.policies.contract import Origin, Report, Traits
from bench.policies.host import Host, Row, evict_in_order
from bench.policies.llm import Llm
from bench.policies.similarity import cosine

SHOWN = 5
THRESHOLD = 0.35
UPDATED_AT, DELETED_AT = 0.8, 0.6
NOVELTY, TYPE, LENGTH, DENSITY, CONTRADICTION, BIAS = 0.5, 1.0, 3.0, 1.5, 1.0, -2.0
_ENOUGH_WORDS, _ENOUGH_NAMED = 12, 4
_DENIAL = re.compile(
    r"\b(?:no longer|not any ?more|forget (?:that|about)|is cancelled|was cancelled)\b", re.I
)
_ACTION = schema(action={"enum": ["ADD", "UPDATE", "DELETE", "NONE"]}, id=INTEGER, text=STRING)
_TOOLS = (
    "Choose one tool for the new message: ADD (text = what to remember), UPDATE (id of a shown memory, text ="
    " what it says from now on), DELETE (id of a shown memory that is void) or NONE. Examples: 'I moved to"
    " Rome' with memory 1 'lives in Oslo' -> UPDATE 1 'lives in Rome'; 'forget about the tent' with memory 2"
    " 'wants a tent' -> DELETE 2; 'thanks, bye' -> NONE; 'my key is under the mat' -> ADD 'the key is under"
    " the mat'."
)


def quality(text: str, nearest: Sequence[str]) -> float:
    """In (0, 1): how much a message is worth keeping beside what is there."""
    words, values = extractive.words(text), extractive.values(text)
    likeness = max((cosine(text, other) for other in nearest), default=0.0)
    features = (
        NOVELTY * (1 - max(0.0, likeness)),
        TYPE * type_prior(text),
        LENGTH * min(1.0, len(words) / _ENOUGH_WORDS),
        DENSITY * min(1.0, (len(values) + len(extractive.names(text))) / _ENOUGH_NAMED),
        CONTRADICTION * any(_contradicts(text, other) for other in nearest),
    )
    return 1 / (1 + math.exp(-(sum(features) + BIAS)))


def _contradicts(text: str, other: str) -> bool:
    """Says the same of something, with another value."""
    theirs, ours = extractive.values(other), extractive.values(text)
    return bool(ours - theirs and theirs - ours) and extractive.words(text) == extractive.words(other)


def _act(prompt: str, wanted: Mapping[str, Any]) -> str:
    """The frozen scorer's action."""
    told = facts_of(prompt)
    text, shown = told["message"], told["memories"]
    action, target = "ADD", 0
    ranked = sorted(range(len(shown)), key=lambda at: (-cosine(text, shown[at]), at))
    if ranked:
        likeness, closest = cosine(text, shown[ranked[0]]), shown[ranked[0]]
        new = (extractive.words(text) | extractive.values(text)) - (
            extractive.words(closest) | extractive.values(closest)
        )
        if _DENIAL.search(text) and likeness >= DELETED_AT:
            action, target = "DELETE", ranked[0] + 1
        elif likeness >= UPDATED_AT and _contradicts(text, closest):
            action, target = "UPDATE", ranked[0] + 1
        elif likeness >= UPDATED_AT and not new:
            action = "NONE"
    if action == "ADD" and quality(text, shown) < THRESHOLD:
        action = "NONE"
    return json.dumps({"action": action, "id": target, "text": text})


class AgeMem:
    """One call a write, none at a squeeze. The row keeps its quality."""

    name = "agemem"
    budget_exempt = False
    traits = Traits(calls_per_write=1, native_knob="action policy", binary=True)
    origin = Origin("AgeMem", "arXiv 2601.01885", "not found", "the frozen policy; eviction")

    def __init__(self, seed: int, llm: Llm | None) -> None:
        self._asker = Asker(llm, {"act": _act})
        self.spent, self.stand_in = self._asker.spent, self._asker.llm.stand_in

    def on_write(self, host: Host, item: Item, now: int) -> Report:
        """One action; without a readable one the message is added as it is."""
        report = Report()
        shown = [number for number, _ in host.nearest(item.text, SHOWN)]
        memories = [host.rows[number].text for number in shown]
        found = self._asker.ask(report, "act", _TOOLS, _ACTION, message=item.text, memories=memories)
        action = found["action"] if found else "ADD"
        text = found["text"] if found and found["text"].strip() else item.text
        target = next(iter(offered([found["id"]], shown)), None) if found else None
        if action == "NONE":
            report.evicted.append(item.id)
        elif action == "DELETE" and target is not None:
            report.evicted.append(host.remove(target).item)
        elif action == "UPDATE" and target is not None:
            row = host.rows[target]
            row.text, row.time = text, item.time
            report.merged.append(item.id)
            _rate(host, row, memories)
        else:
            _rate(host, host.add(item, now, text=text), memories)
        return report

    def on_read(self, host: Host, query: str, hits: Sequence[int], now: int) -> Report:
        """Nothing: the policy is frozen."""
        return Report()

    def on_outcome(self, host: Host, hits: Sequence[int], g: float, now: int) -> None:
        """Nothing."""

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """The lowest quality first, then the oldest."""
        if host.bytes() <= budget_bytes:
            return Report()
        ranked = sorted(
            host.rows.values(), key=lambda row: (float(row.metadata["quality"]), row.created, row.number)
        )
        return evict_in_order(host, [row.number for row in ranked], budget_bytes)


def _rate(host: Host, row: Row, memories: Sequence[str]) -> None:
    row.metadata["quality"] = f"{quality(row.text, memories):.3f}"
    host.touched(row.number)
