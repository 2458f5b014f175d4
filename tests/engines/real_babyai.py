"""The plain-Python grid against minigrid itself, step by step."""

from __future__ import annotations

import random

import pytest

from bench.environments.babyai_grid import DOOR, Layout, Maze, Mission, layouts
from bench.record_babyai import ACTIONS, Level, record_layout

pytest.importorskip("minigrid", reason="the engine is not installed: pip install 'crystalmem[engines]'")

pytestmark = [
    pytest.mark.engines,
    pytest.mark.timeout(600),
    # The engine's own packages import what is deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
WALK = 300
INDEXES = (0, 1, 2, 3, 17)


def begun(index: int, mission: Mission) -> Level:
    level = Level(index)
    assert level.begin([[part.kind, *part.thing] for part in mission.parts]) == mission.text
    return level


def layout_at(index: int) -> Layout:
    return list(layouts().values())[index]


def assert_alike(level: Level, maze: Maze) -> None:
    env = level.env
    assert (tuple(env.agent_pos), env.agent_dir) == (maze.at, maze.heading)
    assert maze.held == ((env.carrying.color, env.carrying.type) if env.carrying else None)
    assert {(x, y): (colour, kind) for x, y, colour, kind in level.things()} == maze.things
    doors = (cell for cell, (_, kind) in maze.things.items() if kind == DOOR)
    assert {cell for cell in doors if env.grid.get(*cell).is_open} == maze.open
    inside = {cell for cell in maze.view() if min(cell) >= 0 and max(cell) < env.width}
    assert set(level.view()) == inside


@pytest.mark.parametrize("index", range(28))
def test_the_recording_is_of_these_levels(index: int) -> None:
    level, grid = Level(index), layout_at(index)
    assert (level.id, level.seed) == (grid.level, grid.seed)
    assert {
        (x, y) for y, row in enumerate(level.walls()) for x, mark in enumerate(row) if mark == "#"
    } == grid.walls
    assert_alike(level, Maze(grid, grid.missions[0]))


@pytest.mark.parametrize("index", INDEXES)
def test_a_random_walk_is_answered_alike(index: int) -> None:
    grid = layout_at(index)
    rng = random.Random(index)
    for mission in rng.sample(grid.missions, 3):
        level, maze = begun(index, mission), Maze(grid, mission)
        for _ in range(WALK):
            # Turning in place meets little: the walk prefers to go on, and to try things.
            action = rng.choice("LRFFFFPPDTT")
            _, reward, won, _, _ = level.env.step(ACTIONS.index(action))
            maze.act(action)
            assert_alike(level, maze)
            assert maze.won == (won and reward > 0)
            if won:
                break


@pytest.mark.parametrize("index", INDEXES)
def test_recorded_runs_win_in_the_engine(index: int) -> None:
    grid = layout_at(index)
    for mission in grid.missions[:10]:
        for run in (mission.shortest, mission.played):
            if run:
                level, won = begun(index, mission), False
                for action in run:
                    assert not won
                    _, reward, over, _, _ = level.env.step(ACTIONS.index(action))
                    won = bool(over and reward > 0)
                assert won


def test_a_layout_is_recorded_again_as_it_was() -> None:
    told, grid = record_layout(0), layout_at(0)
    assert [mission["text"] for mission in told["missions"]] == [mission.text for mission in grid.missions]
    assert [mission["shortest"] for mission in told["missions"]] == [m.shortest for m in grid.missions]
    assert [mission.get("played", "") for mission in told["missions"]] == [m.played for m in grid.missions]
