"""How a data set is cut into seven stages, and what each stage asks; all order comes from the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from crystalmem.demo.episodes import Dataset, Episode, Question
from shared.errors import Code, PermanentError

STAGES = 7
# environments.md leaves the split to us: 70 % before stage 1 is measured, the rest in six equal parts.
FIRST_SHARE = 0.70
# Enough traffic to grade every often-asked entry, few enough that a stage takes a second.
SERVED_PER_STAGE = 48


@dataclass(frozen=True)
class Stage:
    """What happens after stage `number` has settled and been measured, in this order."""

    number: int
    served: tuple[Question, ...]
    writes: tuple[Episode, ...]


@dataclass(frozen=True)
class Stream:
    """A data set in seven stages.

    fixed: measuring questions whose episodes were all written before stage 1; asked at every stage.
    later: measuring questions about later writes; asked once those are written, reported apart.
    """

    before: tuple[Episode, ...]
    stages: tuple[Stage, ...]
    fixed: tuple[Question, ...]
    later: tuple[Question, ...]

    def askable(self, questions: Iterable[Question], stage: int) -> tuple[Question, ...]:
        """Those of `questions` whose episodes are all written when `stage` is measured."""
        written = self._written(stage)
        return tuple(question for question in questions if written.issuperset(question.about))

    def _written(self, stage: int) -> frozenset[str]:
        parts = [self.before, *(part.writes for part in self.stages[: stage - 1])]
        return frozenset(episode.id for part in parts for episode in part)


def cut(dataset: Dataset, seed: int) -> Stream:
    """Cut a data set; PermanentError where no measuring question is about the first part."""
    first = int(len(dataset.episodes) * FIRST_SHARE)
    before, rest = dataset.episodes[:first], dataset.episodes[first:]
    parts = [
        rest[len(rest) * part // (STAGES - 1) : len(rest) * (part + 1) // (STAGES - 1)]
        for part in range(STAGES - 1)
    ]
    writes = [(), *parts]  # stage 1 writes nothing: its content came before it
    known = {episode.id for episode in before}
    measuring = [question for question in dataset.questions if question.split == "measure"]
    fixed = tuple(question for question in measuring if known.issuperset(question.about))
    if not fixed:
        raise PermanentError(
            Code.BAD_INPUT_FILE,
            f"no measuring question is about the first {FIRST_SHARE:.0%} of the episodes",
            hint="docs/demo.md tells how a stream is cut into stages",
            measuring=len(measuring),
        )
    stages = []
    for number in range(1, STAGES + 1):
        stages.append(Stage(number, _served(dataset, known, seed, number), tuple(writes[number - 1])))
        known.update(episode.id for episode in writes[number - 1])
    later = tuple(question for question in measuring if question not in set(fixed))
    return Stream(before, tuple(stages), shuffled(fixed, seed, "measure"), shuffled(later, seed, "later"))


def _served(dataset: Dataset, known: set[str], seed: int, stage: int) -> tuple[Question, ...]:
    eligible = [q for q in dataset.questions if q.split == "serve" and known.issuperset(q.about)]
    return shuffled(eligible, seed, f"serve/{stage}")[:SERVED_PER_STAGE]


def shuffled(questions: Iterable[Question], seed: int, purpose: str) -> tuple[Question, ...]:
    """An order that depends on seed, purpose and ids alone: the same on every machine and Python."""

    def rank(question: Question) -> bytes:
        return hashlib.blake2b(f"{seed}/{purpose}/{question.id}".encode(), digest_size=16).digest()

    return tuple(sorted(questions, key=rank))
