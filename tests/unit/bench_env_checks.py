"""What every environment promises, checked through its public door."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from bench.environments.contract import STAGES, Environment, Question, Size, World
from bench.policies.registry import make
from bench.runner.cell import Cell, run_cell
from bench.runner.paths import path
from shared.errors import Code, InputError

STRANGER = Question("stranger-1", "Who am I?", "none")


class Parrot:
    """A model that always says the same, and remembers what it was asked."""

    name = "parrot"

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self.prompts: list[str] = []

    def complete(self, prompt: str, max_tokens: int) -> str:
        self.prompts.append(prompt)
        return self._answer


def check_promises(make_environment: Callable[[], Environment], size: Size) -> tuple[World, ...]:
    """Seeded, disjoint, well formed, own questions only; gives the worlds of seed 3 back."""
    environment = make_environment()
    worlds = environment.worlds(3, size)
    assert worlds == make_environment().worlds(3, size)
    assert worlds != environment.worlds(4, size)
    assert {world.id for world in worlds}.isdisjoint(world.id for world in environment.worlds(4, size))
    for world in worlds:
        _check_world(world, size)
    for question in questions(worlds):
        assert 0.0 <= environment.g(question, [], None) <= 1.0
    with pytest.raises(InputError) as caught:
        environment.g(STRANGER, ["anything"], None)
    assert caught.value.code is Code.BAD_REQUEST
    for preset in ("quick", "full"):
        assert environment.size(preset).items > 0
    with pytest.raises(InputError, match="no such preset"):
        environment.size("huge")
    return worlds


def questions(worlds: Sequence[World]) -> list[Question]:
    """Everything that is asked without a model."""
    return [
        question
        for world in worlds
        for group in (world.measuring, *world.serving, *world.later)
        for question in group
        if not question.needs_model
    ]


def mean_g(environment: Environment, worlds: Sequence[World], texts: Callable[[World], list[str]]) -> float:
    """C over the measuring questions, 0..1, each given the same texts of its world."""
    grades = [
        environment.g(question, texts(world), None)
        for world in worlds
        for question in world.measuring
        if not question.needs_model
    ]
    return sum(grades) / len(grades)


def keep_all(environment: Environment, worlds: Sequence[World]) -> list[float]:
    """C, 0..100, of the stages with a store that keeps everything."""
    cell = Cell(environment.name, "keep_all", 0, "definition1", "quick")
    rows = run_cell(cell, path("definition1"), environment, worlds, make, None)
    assert not any(row["violations"] for row in rows)
    return [float(row["C"] or 0.0) for row in rows]


def everything(world: World) -> list[str]:
    """All texts of a world, newest last."""
    return [item.text for item in world.items]


def _check_world(world: World, size: Size) -> None:
    assert len(world.stages) == len(world.serving) == len(world.later) == STAGES
    assert world.stages[0]
    assert 0 < len(world.measuring) <= size.measuring
    assert all(0 < len(round_) <= size.serving for round_ in world.serving)
    assert not world.later[0]
    measured = {question.text for question in world.measuring}
    assert len({question.id for question in world.measuring}) == len(world.measuring)
    assert measured.isdisjoint(question.text for round_ in world.serving for question in round_)
    assert not any(question.needs_model for round_ in world.serving for question in round_)
    seen: set[str] = set()
    times = [item.time for item in world.items]
    assert times == sorted(times)
    assert len(set(times)) == len(times)
    for item in world.items:
        assert item.id not in seen
        assert item.text
        assert item.text.isprintable() or "\n" in item.text
        assert seen.issuperset(item.links)
        seen.add(item.id)
