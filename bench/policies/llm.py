"""The one port through which policies use a language model, and its stand-in (baselines.md 0, rule 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.policies.reply_schema import read_json

BYTES_PER_TOKEN = 4
_ATTEMPTS = 2


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


def ask_json(
    llm: Llm,
    spent: Spent,
    purpose: str,
    prompt: str,
    schema: Mapping[str, Any],
    fallback: Callable[[], Any],
) -> Any:
    """One value of `schema`. An answer that cannot be read is asked for once more, then `fallback` decides.

    Every call is charged to `spent`, and so is every answer that could not be read: bad output is no reason
    to lose data, so a fallback keeps what it was given. A model that does not answer raises TransientError.
    """
    for _ in range(_ATTEMPTS):
        answer = llm.complete(purpose, prompt, schema)
        spent.add(purpose, prompt, answer)
        try:
            return read_json(answer, schema)
        except ValueError:
            spent.unreadable += 1
    return fallback()
