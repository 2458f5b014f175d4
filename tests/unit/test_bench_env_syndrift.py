"""SynDrift: one newest value a question, and what Proposition 3 needs, exactly."""

from __future__ import annotations

import re

import pytest

from bench.environments.contract import Size, World
from bench.environments.syndrift import SynDrift
from shared.errors import InputError
from tests.unit.bench_env_checks import Parrot, check_promises, everything, keep_all, mean_g

SIZE = Size(2, 110, 30, 10)


def test_promises() -> None:
    check_promises(SynDrift, SIZE)


def test_a_whole_store_answers_everything_and_an_empty_one_nothing() -> None:
    environment = SynDrift()
    worlds = environment.worlds(1, SIZE)
    assert mean_g(environment, worlds, lambda world: []) == 0.0
    assert mean_g(environment, worlds, everything) == 1.0
    assert keep_all(environment, worlds) == [100.0] * 7


def test_each_item_is_worth_what_the_truth_says() -> None:
    environment = SynDrift()
    for world in environment.worlds(2, SIZE):
        truth = environment.truth(world)
        assert sum(truth.utility.values()) == pytest.approx(1.0)
        for gone, mass in truth.utility.items():
            lost = _lost(environment, world, {gone} | _again(world, gone))
            assert lost >= mass - 1e-9
            assert any(item.id == gone for item in world.stages[0])
        useless = {item.id for item in world.stages[0]} - set(truth.utility)
        assert _lost(environment, world, useless) == 0.0


def test_losses_of_many_items_are_at_least_the_floor() -> None:
    environment = SynDrift()
    (world, _) = environment.worlds(5, SIZE)
    truth = environment.truth(world)
    evicted = [item.id for item in world.stages[0]][::2]
    floor = truth.floor(evicted)
    assert 0.0 < floor < 1.0
    back = {gone for gone in evicted if gone not in truth.again}
    assert _lost(environment, world, back) >= sum(truth.utility.get(gone, 0.0) for gone in back) - 1e-9


def test_items_are_stated_again_as_often_as_their_chance_says() -> None:
    environment = SynDrift()
    expected = stated = 0.0
    for seed in range(30):
        for world in environment.worlds(seed, SIZE):
            truth = environment.truth(world)
            expected += sum(truth.chance.values())
            stated += len(truth.again)
            early = [item for part in world.stages[1:4] for item in part]
            told = {_body(item.text) for item in world.stages[0]}
            assert not any(_body(item.text) in told for item in early)
            assert truth.again <= set(truth.chance)
    assert stated == pytest.approx(expected, rel=0.12)


def test_a_stale_value_scores_nothing_and_a_statement_without_its_day_is_not_read() -> None:
    environment = SynDrift()
    stale = undated = 0
    for world in environment.worlds(7, Size(1, 300, 80, 5)):
        for question in world.measuring:
            right = [text for text in everything(world) if environment.g(question, [text], None)]
            if question.category == "chain" or not right:
                continue
            (text,) = right[:1]
            assert environment.g(question, [re.sub(r"Day \d+: ", "", text)], None) == 0.0
            undated += 1
            older = re.sub(r"Day \d+", "Day 0", text)
            newer = re.sub(r"(?<= )(\w+)(?=, )", "turquoise", re.sub(r"Day \d+", "Day 999", text), count=1)
            if question.category == "door" and "turquoise" not in text:
                assert environment.g(question, [newer, older], None) == 0.0
                stale += 1
    assert undated > 20
    assert stale > 3


def test_later_questions_follow_the_newest_value() -> None:
    environment = SynDrift()
    (world,) = environment.worlds(9, Size(1, 300, 40, 5))
    written = [item.text for item in world.stages[0]]
    for part in range(1, 7):
        before = list(written)
        written += [item.text for item in world.stages[part]]
        assert all(environment.g(question, written, None) == 1.0 for question in world.later[part])
        assert world.later[part]
        if part == 1:
            assert not any(environment.g(question, before, None) for question in world.later[part])


def test_a_model_is_graded_by_the_same_gold() -> None:
    environment = SynDrift()
    (world,) = environment.worlds(1, Size(1, 110, 30, 5))
    door = next(question for question in world.measuring if question.category == "door")
    values = [word for text in everything(world) for word in re.findall(r"painted (\w+)", text)]
    grades = {value: environment.g(door, ["some text"], Parrot(f"It is {value}.")) for value in set(values)}
    assert sorted(grades.values())[-1] == 1.0
    assert sum(grades.values()) == 1.0
    parrot = Parrot("unknown")
    assert environment.g(door, ["some text"], parrot) == 0.0
    assert "some text" in parrot.prompts[0]


def test_another_environments_world_has_no_truth() -> None:
    world = World("stranger", ((),) * 7, (), ((),) * 7)
    with pytest.raises(InputError, match="not a world"):
        SynDrift().truth(world)


def _lost(environment: SynDrift, world: World, gone: set[str]) -> float:
    """The share of the measuring questions that a store without these items does not answer."""
    texts = [item.text for item in world.items if item.id not in gone]
    return 1.0 - mean_g(environment, [world], lambda _: texts)


def _again(world: World, gone: str) -> set[str]:
    """Later items that say the same as this one."""
    said = _body(next(item.text for item in world.items if item.id == gone))
    return {item.id for part in world.stages[1:] for item in part if _body(item.text) == said}


def _body(text: str) -> str:
    """The fact of a statement: no day, no aside."""
    return text.split(": ", 1)[1].split(",", 1)[0]
