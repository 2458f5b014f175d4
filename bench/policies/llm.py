"""The one port through which policies use a language model, and its stand-in (baselines.md 0, rule 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

BYTES_PER_TOKEN = 4


class Llm(Protocol):
    """`stand_in`: True = a deterministic rule answers; reports label such results."""

    stand_in: bool
    name: str

    def complete(self, purpose: str, prompt: str, schema: Mapping[str, Any]) -> str:
        """Raw text that should hold JSON of `schema`; TransientError when nobody answers."""
        ...


@dataclass
class Spent:
    """Calls and tokens by purpose, and answers that could not be read."""

    calls: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0

    def add(self, purpose: str, prompt: str, answer: str) -> int:
        """Charge one call; its tokens, estimated from bytes."""
        tokens = (len(prompt.encode()) + len(answer.encode())) // BYTES_PER_TOKEN
        self.calls[purpose] = self.calls.get(purpose, 0) + 1
        self.tokens[purpose] = self.tokens.get(purpose, 0) + tokens
        return tokens


Rule = Callable[[str, Mapping[str, Any]], str]
"""What stands in for a model at one purpose: (prompt, schema) to the text that a model would give."""


class StandIn:
    """Deterministic rules by purpose; offline, free, and named so."""

    stand_in = True
    name = "deterministic stand-in"

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def complete(self, purpose: str, prompt: str, schema: Mapping[str, Any]) -> str:
        return self._rules[purpose](prompt, schema)
