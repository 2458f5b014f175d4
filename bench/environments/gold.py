"""Gold answers by question: they stay with the environment, and only its own questions are graded."""

from __future__ import annotations

from typing import Generic, TypeVar

from bench.environments.contract import Question
from shared.errors import Code, InputError

Gold = TypeVar("Gold")


class GoldBook(Generic[Gold]):
    """Filled while worlds are made, read while answers are graded."""

    def __init__(self, environment: str) -> None:
        self._environment = environment
        self._known: dict[Question, Gold] = {}

    def put(self, question: Question, gold: Gold) -> Question:
        """Remember what a question's answer is graded against; gives the question back."""
        self._known[question] = gold
        return question

    def of(self, question: Question) -> Gold:
        """The gold of a question; InputError(BAD_REQUEST) for one of another environment."""
        if question not in self._known:
            raise InputError(
                Code.BAD_REQUEST,
                "not a question of this environment",
                environment=self._environment,
                question=question.id,
                hint="Grade with the environment whose worlds() made it.",
            )
        return self._known[question]
