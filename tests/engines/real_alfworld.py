"""The plain-Python household domain against the real ALFWorld engine, step by step."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from bench.alfworld_agent import Agent, start_engine
from bench.alfworld_games import Home, Wheel, load_wheel, make_game
from bench.environments.alfworld_domain import NOTHING, HomeEngine, Rooms, opening
from bench.environments.alfworld_homes import WORDINGS, Task, household, tasks
from bench.record_homes import furnished, game_of

pytest.importorskip("textworld", reason="the engine is not installed: pip install 'crystalmem[engines]'")

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(600),
    # The engine's own packages import what is deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
WALK = 50
OTHER_COMMANDS = {"look", "inventory", "help"}


def name_of(home: Home) -> str:
    """The environment's name of a recorded home: one search term."""
    return home.name.replace("-", "")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALFWORLD_DATA", str(tmp_path_factory.mktemp("alfworld")))
        return load_wheel()


@pytest.fixture(scope="module")
def engine(wheel: Wheel) -> Any:
    return start_engine()


def test_the_recording_is_of_these_homes(wheel: Wheel) -> None:
    for index in range(8):
        home, places = furnished(wheel, index, 8)
        house = household(name_of(home))
        assert dict(house.home.receptacles) == dict(home.receptacles)
        assert house.places == places


def test_the_task_texts_are_the_engines(wheel: Wheel) -> None:
    assert {family: list(texts) for family, texts in WORDINGS.items()} == {
        family: wheel.goals[family]["templates"] for family in WORDINGS
    }


@pytest.mark.parametrize("index", range(8))
def test_a_random_walk_is_answered_alike(wheel: Wheel, engine: Any, index: int) -> None:
    home, places = furnished(wheel, index, 8)
    rng = random.Random(f"walk/{index}")
    game = make_game(wheel, home, places, rng)
    task = Task(game.family, game.target, game.place, game.lamp)
    house = household(name_of(home))
    assert task in tasks(name_of(home))
    rooms = Rooms(house, task)
    engine.load(game.data)
    state = engine.reset()
    assert state["feedback"] == opening(house, game.task)
    for _ in range(WALK):
        theirs = set(state["admissible_commands"]) - OTHER_COMMANDS
        assert set(rooms.admissible()) == theirs
        # Two walks in three do something where they are.
        near = sorted(command for command in theirs if not command.startswith("go to"))
        command = rng.choice(near if near and rng.random() < 0.6 else sorted(theirs))
        state, _, done = engine.step(command)
        assert rooms.act(command) == state["feedback"], command
        assert rooms.won == bool(state["won"]), command
        if done:
            break


def test_what_is_not_possible_changes_nothing_in_either(wheel: Wheel, engine: Any) -> None:
    home, places = furnished(wheel, 0, 8)
    game, _ = game_of(wheel, home, places, 0)
    engine.load(game.data)
    engine.reset()
    rooms = Rooms(household(name_of(home)), Task(game.family, game.target, game.place, game.lamp))
    thing, place = next(iter(places.items()))
    for command in (f"take {thing} from {place}", f"open {place}", "cool moon 1 with fridge 1", "dance"):
        state, _, _ = engine.step(command)
        assert rooms.act(command) == state["feedback"] == NOTHING, command


@pytest.mark.parametrize("index", range(8))
def test_the_recording_agent_plays_alike_in_both(wheel: Wheel, engine: Any, index: int) -> None:
    home, places = furnished(wheel, index, 8)
    number = 20 + index  # a game that is not in the recording
    game, rng = game_of(wheel, home, places, number)
    real = Agent(engine, home, game, rng).play(number)
    game, rng = game_of(wheel, home, places, number)
    task = Task(game.family, game.target, game.place, game.lamp)
    ours = HomeEngine()
    data = {"rooms": Rooms(household(name_of(home)), task), "text": game.task}
    mine = Agent(ours, home, replace(game, data=data), rng).play(number)
    assert mine.steps == real.steps
    assert (mine.intro, mine.won, mine.places, mine.held) == (real.intro, real.won, real.places, real.held)


def test_a_recorded_episode_is_what_the_engine_plays(wheel: Wheel, engine: Any) -> None:
    for index in (1, 4):
        home, places = furnished(wheel, index, 8)
        episode = household(name_of(home)).episodes[0]
        game, rng = game_of(wheel, home, places, 0)
        record = Agent(engine, home, game, rng).play(0)
        assert (record.task, record.intro, record.won) == (episode.text, episode.intro, episode.won)
        assert tuple((step.command, step.observation) for step in record.steps) == episode.steps
