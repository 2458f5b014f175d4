"""One question as the agent asks it: one recall, or a walk of them, and what the answer is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.environments.contract import Environment, Model, Question, Walker
from bench.policies.contract import Arm, Recalled
from bench.policies.llm import BYTES_PER_TOKEN

ANSWER_TOKENS = 32
"""What a reader-free answer is taken to cost beside its question and texts."""


@dataclass(frozen=True)
class Asked:
    """queries and recalls in order; g over the texts of all of them."""

    queries: tuple[str, ...]
    recalls: tuple[Recalled, ...]
    g: float

    @property
    def tokens(self) -> int:
        """n of Eq. 10 for the answer, estimated from bytes: what was asked, what was read, a short answer."""
        return sum(self.tokens_of(at) for at in range(len(self.recalls))) + ANSWER_TOKENS

    def tokens_of(self, at: int) -> int:
        """The part of one recall."""
        read = len(self.queries[at].encode()) + sum(len(hit.text.encode()) for hit in self.recalls[at].hits)
        return math.ceil(read / BYTES_PER_TOKEN)


def asked(
    arm: Arm, environment: Environment, question: Question, model: Model | None, *, record: bool
) -> Asked:
    """record False changes nothing; True leaves a ticket for each recall."""
    queries: list[str] = []
    recalls: list[Recalled] = []
    texts: list[list[str]] = []
    for query in walk(environment, question, texts, model):
        found = arm.recall(query, environment.hits, environment.hit_bytes, record=record)
        queries.append(query)
        recalls.append(found)
        texts.append([hit.text for hit in found.hits])
    return Asked(tuple(queries), tuple(recalls), environment.g(question, _flat(texts), model))


def walk(
    environment: Environment, question: Question, texts: Sequence[Sequence[str]], model: Model | None
) -> Iterator[str]:
    """The queries of a question. Whoever iterates puts what each returned into `texts` before the next."""
    yield question.text
    while isinstance(environment, Walker) and (query := environment.follow_up(question, texts, model)):
        yield query


def credit(arm: Arm, one: Asked) -> None:
    """Tell the arm how well the answer did, once for each recall that it rested on."""
    for at, found in enumerate(one.recalls):
        if found.ticket:
            arm.outcome(found.ticket, one.g, one.tokens_of(at) + ANSWER_TOKENS * (at == 0))


def _flat(texts: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(text for found in texts for text in found))
