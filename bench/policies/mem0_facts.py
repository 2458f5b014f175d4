"""What stands in for a model in both generations of Mem0: extraction of facts, and the decision per fact."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bench.policies import extractive
from bench.policies.asking import facts_of
from bench.policies.similarity import cosine

SAME = 0.95
"""At or above, with the same values: the memory says it already."""
_GROWN = 0.6
_CONTRADICTED = 0.7
_DENIED = 0.5
_DENIAL = re.compile(
    r"\b(?:no longer|not any ?more|never|stopped|instead of|changed to|isn't|aren't)\b", re.I
)


def extract(prompt: str, schema: Mapping[str, Any]) -> str:
    """Statements of the message that tell something."""
    return json.dumps({"facts": extractive.facts(facts_of(prompt)["message"])})


def decide(prompt: str, schema: Mapping[str, Any]) -> str:
    """NONE for what is known, UPDATE for what has grown, DELETE and ADD for what has changed, else ADD."""
    told = facts_of(prompt)
    actions: list[dict[str, Any]] = []
    taken: set[int] = set()
    for fact in told["facts"]:
        event, target = _event(fact, told["memories"], taken)
        if target:
            taken.add(target)
        if event == "DELETE":
            actions.append({"event": "DELETE", "id": target, "text": ""})
            event, target = "ADD", 0
        actions.append({"event": event, "id": target, "text": fact})
    return json.dumps({"actions": actions})


def _event(fact: str, memories: list[str], taken: set[int]) -> tuple[str, int]:
    """The event and the rank (from 1) of the memory that it is about; 0 for a new one."""
    near = [(cosine(fact, text), -at) for at, text in enumerate(memories, 1) if at not in taken]
    if not near:
        return "ADD", 0
    likeness, place = max(near)
    memory = memories[-place - 1]
    new, old = extractive.words(fact), extractive.words(memory)
    same_values = extractive.values(fact) == extractive.values(memory)
    if fact == memory or (same_values and (likeness >= SAME or (new and new <= old))):
        return "NONE", -place
    if old and old <= new and extractive.values(memory) <= extractive.values(fact) and likeness >= _GROWN:
        return "UPDATE", -place
    denies = _DENIAL.search(fact) is not None and likeness >= _DENIED
    if denies or (likeness >= _CONTRADICTED and not same_values):
        return "DELETE", -place
    return "ADD", 0
