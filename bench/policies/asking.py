"""How a policy asks its model: through the port, billed to its own account and to the report of the pass."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.policies.contract import Report
from bench.policies.llm import Llm, Rule, Spent, StandIn, ask_json

_FACTS = "\n\nFACTS: "
STRING: Mapping[str, Any] = {"type": "string"}
INTEGER: Mapping[str, Any] = {"type": "integer"}
STRINGS: Mapping[str, Any] = {"type": "array", "items": STRING}
INTEGERS: Mapping[str, Any] = {"type": "array", "items": INTEGER}


def schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these properties, all required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def prompt(instruction: str, **facts: Any) -> str:
    """An instruction with its facts as one JSON line, which a stand-in reads back with `facts_of`."""
    return f"{instruction}{_FACTS}{json.dumps(facts, ensure_ascii=False)}"


def facts_of(text: str) -> dict[str, Any]:
    """The facts of a `prompt`."""
    facts: dict[str, Any] = json.loads(text.split(_FACTS, 1)[1])
    return facts


class Asker:
    """A policy's model, or the stand-in by rules, and what it has cost."""

    def __init__(self, llm: Llm | None, rules: Mapping[str, Rule]) -> None:
        self.llm: Llm = StandIn(rules) if llm is None else llm
        self.spent = Spent()

    def ask(
        self, report: Report, purpose: str, instruction: str, wanted: Mapping[str, Any], **facts: Any
    ) -> Mapping[str, Any] | None:
        """The answer, or None when it could not be read twice; calls and tokens go to `report`."""
        calls, tokens = self._totals()
        question = prompt(instruction, **facts)
        found: Mapping[str, Any] | None = ask_json(
            self.llm, self.spent, purpose, question, wanted, lambda: None
        )
        after_calls, after_tokens = self._totals()
        report.model_calls += after_calls - calls
        report.model_tokens += after_tokens - tokens
        return found

    def _totals(self) -> tuple[int, int]:
        return sum(self.spent.calls.values()), sum(self.spent.tokens.values())


def offered(ranks: Sequence[Any], numbers: Sequence[int]) -> list[int]:
    """Host numbers behind ranks 1, 2, ... that were shown to the model; ranks never shown are ignored."""
    return [numbers[rank - 1] for rank in ranks if isinstance(rank, int) and 1 <= rank <= len(numbers)]
