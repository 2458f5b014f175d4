"""A store that keeps everything, its traffic, and what each entry was truly worth to it: leave-one-out."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.environments.contract import Environment, Question, World
from bench.policies.host import Host
from bench.runner.asking import walk


@dataclass(frozen=True)
class Served:
    """One graded recall: entries with their retrieval scores, best first."""

    question: Question
    numbers: tuple[int, ...]
    scores: tuple[float, ...]
    texts: tuple[str, ...]
    g: float


@dataclass(frozen=True)
class Store:
    """A world's first writes in the host that all baselines share."""

    environment: Environment
    world: World
    host: Host

    @classmethod
    def of(cls, environment: Environment, world: World) -> Store:
        """Everything that is written before stage 1 is measured."""
        host = Host()
        for now, item in enumerate(world.stages[0], 1):
            host.add(item, now)
        return cls(environment, world, host)

    def serve(self, questions: Sequence[Question]) -> list[Served]:
        """Ask in this order; nothing is learnt here."""
        return [self._asked(question) for question in questions]

    def worth(self, numbers: Sequence[int], served: Sequence[Served]) -> dict[int, float]:
        """Leave-one-out: by how much the mean grade of `served` falls when the entry is not in the store.

        An entry that a question did not get changes nothing there: those are not asked again.
        """
        drops = dict.fromkeys(numbers, 0.0)
        for number in numbers:
            touched = [one for one in served if number in one.numbers]
            row = self.host.rows[number]
            self._hide(number)
            drops[number] = sum(one.g - self._asked(one.question).g for one in touched) / max(len(served), 1)
            row.searchable = True
            self.host.touched(number)
        return drops

    def close(self) -> None:
        """The index goes."""
        self.host.close()

    def _hide(self, number: int) -> None:
        self.host.rows[number].searchable = False
        self.host.touched(number)

    def _asked(self, question: Question) -> Served:
        found: dict[int, tuple[str, float]] = {}
        returned: list[list[str]] = []
        for query in walk(self.environment, question, returned, None):
            hits = self.host.search(query, self.environment.hits, self.environment.hit_bytes)
            returned.append([text for _, text, _ in hits])
            for number, text, score in hits:
                found.setdefault(number, (text, score))
        texts = tuple(text for text, _ in found.values())
        scores = tuple(score for _, score in found.values())
        return Served(question, tuple(found), scores, texts, self.environment.g(question, texts, None))


def drawn(questions: Sequence[Question], count: int, seed: int) -> Iterator[Question]:
    """`count` questions with replacement: what is asked of a memory comes again."""
    rng = random.Random(seed)
    return (rng.choice(questions) for _ in range(count))
