"""BabyAI without its engine: the grid, the agent that walks, the texts and the environment."""

from __future__ import annotations

from statistics import mean

import pytest

from bench.environments import registry
from bench.environments.babyai import BabyAi
from bench.environments.babyai_grid import DOOR, Cell, Layout, Maze, Mission, Thing, layout, layouts
from bench.environments.babyai_player import Told, limit_of, play, wins
from bench.environments.babyai_texts import episode_text, place_texts, read_told
from bench.environments.contract import STAGES, Question, Size, World
from bench.policies.host import Host
from bench.runner import paths
from bench.runner.cell import Cell as BenchCell
from bench.runner.cell import run_cell
from shared.errors import InputError
from shared.memory.model import Kind
from tests.unit import bench_worlds

NAMES = sorted(layouts())


@pytest.fixture(scope="module")
def environment() -> BabyAi:
    return BabyAi(None)


@pytest.fixture(scope="module")
def world(environment: BabyAi) -> World:
    return environment.worlds(0, environment.size("quick"))[0]


def everything(grid: Layout) -> Told:
    things: dict[Thing, tuple[Cell, ...]] = {}
    for cell, thing in grid.things.items():
        things[thing] = (*things.get(thing, ()), cell)
    return Told(things)


def answered(environment: BabyAi, world: World, share: float = 1.0, newest: float = 1.0) -> float:
    """Mean g over the measuring questions when texts are cut to a share, and the newest entries are kept."""
    host = Host()
    items = world.stages[0]
    for number, item in enumerate(items[len(items) - round(newest * len(items)) :]):
        host.add(item, number)
    grades = []
    for question in world.measuring:
        found = host.search(question.text, environment.hits, environment.hit_bytes)
        texts = [text[: round(share * len(text))] for _, text, _ in found]
        grades.append(environment.g(question, texts, None))
    host.close()
    return mean(grades)


# --- the grid ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_bots_recorded_runs_replay(name: str) -> None:
    """Every mission is won by its last action, not before; what came into view is what minigrid showed."""
    grid = layout(name)
    assert sum(bool(mission.played) for mission in grid.missions) == 8
    for mission in grid.missions:
        replayed(grid, mission, mission.shortest)
        if mission.played:
            assert replayed(grid, mission, mission.played, watch=True) == {
                cell: step for step, cell in mission.seen
            }


def replayed(grid: Layout, mission: Mission, run: str, *, watch: bool = False) -> dict[Cell, int]:
    maze, seen = Maze(grid, mission), dict[Cell, int]()
    for step, action in enumerate([*run, ""]):
        for cell in maze.view() if watch else ():
            if cell in maze.things:
                seen.setdefault(cell, step)
        assert maze.won == (not action)
        if action:
            maze.act(action)
    return seen


def test_what_is_not_possible_costs_its_step_and_changes_nothing() -> None:
    grid = layout(NAMES[0])
    maze = Maze(grid, grid.missions[0])
    while maze.free(maze.front):
        maze.act("F")
    at, things, steps = maze.at, dict(maze.things), maze.steps
    for action in "FDP" if grid.things.get(maze.front, ("", DOOR))[1] == DOOR else "FD":
        maze.act(action)
    assert (maze.at, maze.things, maze.steps) == (at, things, steps + 3 - (maze.held is not None))


def test_an_action_that_there_is_not_is_refused() -> None:
    grid = layout(NAMES[0])
    for action in ("", "X", "LR"):
        with pytest.raises(InputError, match="no such action"):
            Maze(grid, grid.missions[0]).act(action)


def test_what_is_picked_up_is_carried_and_put_down_elsewhere() -> None:
    for grid in layouts().values():
        mission = next(m for m in grid.missions if m.parts[0].kind == "pick up")
        maze = Maze(grid, mission)
        for action in mission.shortest:
            maze.act(action)
        thing = mission.parts[0].thing
        assert maze.held == thing
        assert (
            sum(its == thing for its in maze.things.values())
            == sum(i == thing for i in grid.things.values()) - 1
        )
        cell = maze.front
        maze.act("D")
        assert maze.held is None
        assert maze.things[cell] == thing


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(InputError, match="no such BabyAI layout"):
        layout("maze99")


# --- the agent --------------------------------------------------------------------------------------------


def test_who_knows_the_maze_does_nearly_every_mission_and_who_does_not_fails_most() -> None:
    far = [
        (name, number)
        for name in NAMES
        for number, mission in enumerate(layout(name).missions)
        if len(mission.shortest) >= 15 and number % 5 == 0
    ]
    knowing = mean(wins(name, number, everything(layout(name))) for name, number in far)
    blind = mean(wins(name, number, Told()) for name, number in far)
    assert knowing > 0.97
    assert blind < 0.4


def test_the_agent_keeps_to_its_steps_and_takes_any_telling() -> None:
    grid = layout(NAMES[3])
    mission = max(grid.missions, key=lambda mission: len(mission.shortest))
    for cells in (((0, 0),), ((99, 99), (-1, 3)), ((1, 1), (20, 20), (7, 7))):
        told = Told({part.thing: cells for part in mission.parts} | {("red", DOOR): cells})
        assert play(grid, mission, told, 25).steps <= 25
    assert play(grid, mission, everything(grid), limit_of(mission)).won
    assert play(grid, mission, Told(), 0).steps == 0


def test_a_wrong_telling_is_worse_than_a_right_one() -> None:
    lies, truths = [], []
    for name in NAMES[:10]:
        grid = layout(name)
        told = everything(grid)
        cells = [cell for cells in told.things.values() for cell in cells]
        shifted = dict(zip(told.things, [(cell,) for cell in cells[1:]], strict=False))
        for number in range(0, len(grid.missions), 6):
            truths.append(wins(name, number, told))
            lies.append(wins(name, number, Told(shifted)))
    assert mean(lies) < mean(truths) - 0.3


# --- texts ------------------------------------------------------------------------------------------------


def test_an_episode_and_its_facts_tell_how_its_mission_is_done() -> None:
    whole, facts = [], []
    for name in NAMES:
        grid = layout(name)
        for number, mission in enumerate(grid.missions):
            if mission.played:
                whole.append(wins(name, number, read_told(name, [episode_text(grid, "e1", mission)])))
                told = list(place_texts(grid, "e1", mission).values())
                facts.append(wins(name, number, read_told(name, told)))
    assert mean(whole) > 0.9
    assert mean(facts) > 0.8


def test_only_what_is_of_this_maze_is_told() -> None:
    texts = [
        "red ball at (3, 4).",
        "In maze07, red ball at (10, 12), by green door at (7, 3).",
        "maze08: red ball at (1, 1)",
    ]
    assert read_told("maze07", texts).things == {
        ("red", "ball"): ((10, 12), (3, 4)),
        ("green", "door"): ((7, 3),),
    }
    assert read_told("maze08", texts).things == {("red", "ball"): ((1, 1), (3, 4))}


def test_shortened_places_are_read_and_half_lost_ones_are_not() -> None:
    rooms = "room C2 grey key 9 purple ball 16 9 red box 3"
    text = f"maze07 episode e001\n{rooms}\ndoor green door 14 19 7 15 blue door 5"
    assert read_told("maze07", [text]).things == {
        ("purple", "ball"): ((16, 9),),
        ("green", "door"): ((14, 19),),
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "red ball",
        "red ball at (3",
        "red ball at (99, 99)",
        "\x00\ud800 red ball at (x, y)",
        "maze01 " * 500,
    ],
)
def test_the_reader_takes_any_text(environment: BabyAi, world: World, text: str) -> None:
    for question in world.measuring[:5]:
        assert environment.g(question, [text], None) in {0.0, 1.0}


# --- the environment --------------------------------------------------------------------------------------


def test_it_is_in_the_registry_and_held_out() -> None:
    assert registry.make("babyai", None).name == "babyai"
    assert registry.HELD_OUT == ("babyai",)


def test_worlds_are_a_function_of_seed_and_size(world: World) -> None:
    environment = BabyAi(None)
    size = environment.size("quick")
    assert environment.worlds(0, size) == (world,)
    assert environment.worlds(1, size) != (world,)


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_a_world_is_what_the_size_asks_for(environment: BabyAi, preset: str) -> None:
    size = environment.size(preset)
    (world,) = environment.worlds(2, size)
    assert len(world.items) == len({item.id for item in world.items}) == size.items
    assert len(world.measuring) == size.measuring >= (60 if preset == "full" else 30)
    assert len(world.stages) == len(world.serving) == len(world.later) == STAGES
    assert all(len(served) == size.serving for served in world.serving)
    assert {item.kind for item in world.items} == {Kind.EPISODE, Kind.MEMORY}
    times = [item.time for item in world.items]
    assert times == sorted(set(times))


def test_links_lead_to_earlier_items(world: World) -> None:
    seen: set[str] = set()
    for item in world.items:
        assert set(item.links) <= seen
        assert item.links or item.kind is Kind.EPISODE
        seen.add(item.id)


def test_no_mission_is_asked_in_two_roles_or_was_played_before(world: World) -> None:
    asked = [question.text for question in world.measuring]
    asked += [question.text for served in world.serving for question in served]
    asked += [question.text for told in world.later for question in told]
    assert len(asked) == len(set(asked))
    for item in world.items:
        maze, _, rest = item.text.partition("\n")[0].partition(" episode ")
        assert f"{maze}: {rest.partition('mission: ')[2]}" not in asked


def test_memory_is_what_wins(environment: BabyAi, world: World) -> None:
    full, empty = answered(environment, world), answered(environment, world, newest=0.0)
    half, newest = answered(environment, world, share=0.5), answered(environment, world, newest=0.25)
    assert full > empty + 0.3
    assert empty < half < full
    assert empty < newest < full


@pytest.mark.parametrize(
    "size",
    [Size(0, 10, 5, 2), Size(1, 0, 5, 2), Size(1, 10, 0, 2), Size(1, 10, 5, -1), Size(1, 10_000, 5, 2)],
)
def test_a_size_that_cannot_be_is_refused(environment: BabyAi, size: Size) -> None:
    with pytest.raises(InputError):
        environment.worlds(0, size)


def test_an_unknown_preset_is_refused(environment: BabyAi) -> None:
    with pytest.raises(InputError, match="preset"):
        environment.size("huge")


@pytest.mark.parametrize(
    "name",
    ["", "q1", "babyai/maze01", "babyai/maze01/x", "babyai/maze01/-1", "babyai/maze01/999",
     "babyai/maze01/" + "0" * 5000, "babyai/maze99/1", "alfworld/maze01/1", "babyai/maze01/1/2",
     "babyai/maze01/²"],
)  # fmt: skip
def test_a_question_of_another_environment_is_refused(environment: BabyAi, name: str) -> None:
    with pytest.raises(InputError):
        environment.g(Question(name, "maze01: go to the red ball."), ["text"], None)


class Scripted:
    """A model that answers by rule."""

    name = "scripted"

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.prompts: list[str] = []

    def complete(self, prompt: str, max_tokens: int) -> str:
        self.prompts.append(prompt)
        return self.answer


def test_a_model_is_asked_what_the_texts_tell(environment: BabyAi, world: World) -> None:
    question = next(q for q in world.measuring if environment.g(q, [], None) == 0.0)
    maze = question.id.split("/")[1]
    told = [f"{colour} {kind} at ({x}, {y})" for (x, y), (colour, kind) in layout(maze).things.items()]
    text = f"In {maze}, " + ", ".join(told)
    good, silent, lost = Scripted("\n".join(told)), Scripted(""), Scripted("red ball at the end of the hall")
    assert environment.g(question, [text], good) == 1.0
    assert environment.g(question, [text], None) == 1.0
    assert environment.g(question, [text], silent) == 0.0
    assert environment.g(question, [text], lost) == 0.0
    (prompt,) = good.prompts
    assert text in prompt
    assert question.text.partition(": ")[2].rstrip(".") in prompt


def test_a_cell_runs_along_the_cycle(environment: BabyAi) -> None:
    worlds = environment.worlds(0, Size(1, 40, 12, 3))
    rows = {}
    for policy in ("keep_all", "oldest"):
        cell = BenchCell("babyai", policy, 0, "definition1", "quick")
        rows[policy] = run_cell(cell, paths.path("definition1"), environment, worlds, bench_worlds.make, None)
    trough = {policy: row[3]["C"] for policy, row in rows.items()}
    assert isinstance(trough["keep_all"], float)
    assert isinstance(trough["oldest"], float)
    assert trough["keep_all"] > trough["oldest"]
    assert all(row["violations"] == 0 for row in rows["oldest"])
