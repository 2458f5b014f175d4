"""What every environment gives a policy and the runner: a stream, questions, and g from returned texts only.

Gold answers, game files and ids never leave the environment: a policy sees an Item's text, kind, time and
links, and a question's text.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

from shared.memory.model import Kind

T = TypeVar("T")
STAGES = 7
FIRST_SHARE = 0.7
"""Share of a stream that is written before stage 1 is measured; the rest comes in six equal parts."""


@dataclass(frozen=True)
class Item:
    """One write. `text` is what mu counts; `links`: ids of earlier items it cites; time: seconds, rising."""

    id: str
    text: str
    kind: Kind
    time: float
    links: tuple[str, ...] = ()
    source: str = "own"
    """`own` experience, a `peer`'s, or a `tool`'s unverified output (CURATOR weighs trust by it)."""


@dataclass(frozen=True)
class Question:
    """Something the agent wants to know or do. `text` is what memory is asked with.

    category: the environment's own (reported apart where it says so). changed: a later write replaced its
    truth, so it is not comparable over the stages. needs_model: only a model's answer can be graded (it must
    decline, or a rubric judges it); measuring questions only, and reader-free runs leave it out.
    """

    id: str
    text: str
    category: str = ""
    changed: bool = False
    needs_model: bool = False


@dataclass(frozen=True)
class World:
    """One store's life. stages[0] is written before stage 1 is measured, stages[s] after stage s + 1 is.

    measuring: asked at all seven stages, about stages[0] only, never recorded. serving[s]: asked in stage
    s + 1, recorded and graded; disjoint from measuring. later[s]: questions about what stages 1..s have
    written, asked from then on and reported apart.
    """

    id: str
    stages: tuple[tuple[Item, ...], ...]
    measuring: tuple[Question, ...]
    serving: tuple[tuple[Question, ...], ...]
    later: tuple[tuple[Question, ...], ...] = field(default=((),) * STAGES)

    @property
    def items(self) -> tuple[Item, ...]:
        """The whole stream."""
        return tuple(item for stage in self.stages for item in stage)


@dataclass(frozen=True)
class Size:
    """How much runs: worlds a seed, items a world, questions a world and (serving) a stage."""

    worlds: int
    items: int
    measuring: int
    serving: int


class Model(Protocol):
    """A language model at an OpenAI-compatible endpoint; the reader-free answerer is None instead."""

    @property
    def name(self) -> str: ...

    def complete(self, prompt: str, max_tokens: int) -> str:
        """Temperature 0; TransientError when it does not answer."""
        ...


class Environment(Protocol):
    """Deterministic in (data, seed, size): same worlds, same questions, same grades."""

    @property
    def name(self) -> str: ...

    @property
    def hits(self) -> int:
        """k: how many entries a question gets at most."""
        ...

    @property
    def hit_bytes(self) -> int:
        """The most bytes a question gets."""
        ...

    @property
    def provenance(self) -> str:
        """One line for the tables: which data, how much of it, what was generated or recorded."""
        ...

    def size(self, preset: str) -> Size:
        """`quick` or `full`."""
        ...

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """The worlds of a seed."""
        ...

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """The graded outcome in [0, 1] from the returned texts, best first; model None = reader-free.

        Raises InputError(BAD_REQUEST) for a question of another environment.
        """
        ...


@runtime_checkable
class Walker(Protocol):
    """An environment whose agent asks memory again with what it has read, as a chain of facts needs it."""

    def follow_up(self, question: Question, texts: Sequence[Sequence[str]], model: Model | None) -> str:
        """The next query, from what each query so far has returned; "" when the agent asks no more.

        A fixed number of queries at most, decided by the question and the texts alone.
        """
        ...


def cut(items: Sequence[T], first_share: float = FIRST_SHARE) -> tuple[tuple[T, ...], ...]:
    """A stream in seven parts: the first 70 %, then six equal ones (the last take what is left)."""
    first = min(len(items), max(1, round(first_share * len(items)))) if items else 0
    rest = items[first:]
    bounds = [first + round(part * len(rest) / (STAGES - 1)) for part in range(STAGES)]
    parts = [tuple(items[:first])]
    parts += [tuple(items[begin:end]) for begin, end in itertools.pairwise(bounds)]
    return tuple(parts)
