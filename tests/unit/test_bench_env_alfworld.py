"""ALFWorld without its engine: the domain, the player, the texts and the environment."""

from __future__ import annotations

from statistics import mean

import pytest

from bench.environments import registry
from bench.environments.alfworld import AlfWorld
from bench.environments.alfworld_domain import NOTHING, Rooms, opening
from bench.environments.alfworld_homes import LOOK, TWO, Task, household, tasks, verb_of
from bench.environments.alfworld_player import Plan, fewest_steps, limit_of, play
from bench.environments.alfworld_texts import episode_text, place_texts, read_plan, skill_text
from bench.environments.contract import STAGES, Question, Size, World
from bench.policies.host import Host
from bench.runner import paths
from bench.runner.cell import Cell, run_cell
from shared.errors import InputError
from shared.memory.model import Kind
from tests.unit import bench_worlds

HOMES = [f"home{number:02d}" for number in range(1, 9)]
COOL = "pick_cool_then_place_in_recep"


@pytest.fixture(scope="module")
def environment() -> AlfWorld:
    return AlfWorld(None)


@pytest.fixture(scope="module")
def world(environment: AlfWorld) -> World:
    return environment.worlds(1, environment.size("quick"))[0]


def answered(environment: AlfWorld, world: World, share: float = 1.0, newest: float = 1.0) -> float:
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


# --- the domain -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOMES)
def test_the_engines_recorded_episodes_replay_word_by_word(name: str) -> None:
    house = household(name)
    assert len(house.episodes) == 10
    for episode in house.episodes:
        rooms = Rooms(house, episode.task)
        assert opening(house, episode.text) == episode.intro
        for command, observation in episode.steps:
            assert command in rooms.admissible() or command.startswith("examine")
            assert rooms.act(command) == observation
        assert rooms.won == episode.won
        assert episode.task in tasks(name)


def test_what_is_not_possible_changes_nothing() -> None:
    house = household("home01")
    rooms = Rooms(house, house.episodes[0].task)
    for command in (
        "take plate 607 from cabinet 3",  # the agent is not there
        "open cabinet 3",
        "go to attic 1",
        "cool plate 607 with fridge 1",
        "dance",
        "",
    ):
        assert rooms.act(command) == NOTHING
    rooms.act("go to cabinet 3")
    assert rooms.act("take plate 607 from cabinet 3") == NOTHING  # it is closed
    rooms.act("open cabinet 3")
    rooms.act("take plate 607 from cabinet 3")
    assert rooms.act("take cup 176 from cabinet 3") == NOTHING  # one thing in the hand
    rooms.act("go to fridge 1")
    assert rooms.act("heat plate 607 with fridge 1") == NOTHING
    assert rooms.act("examine plate 607") == "There's nothing special about plate 607."
    assert rooms.places == {thing: place for thing, place in house.places.items() if thing != "plate 607"}


@pytest.mark.parametrize("name", [*HOMES, "home14", "home86"])
def test_every_task_can_be_done_with_a_plan_and_hardly_any_without(name: str) -> None:
    house = household(name)
    won = [play(house, task, Plan(), limit_of(name, task)).won for task in tasks(name)]
    assert all(fewest_steps(name, task) <= 12 for task in tasks(name))
    assert mean(won) < 0.25


def test_a_home_furnished_anew_is_the_same_home_with_things_elsewhere() -> None:
    old, new = household("home02"), household("home32")
    assert new.home.receptacles == old.home.receptacles
    assert set(new.places) == set(old.places)
    assert new.places != old.places
    assert new.episodes == ()
    for thing, place in new.places.items():
        kind = new.home.belongings[thing]
        assert kind in new.can[new.home.receptacles[place]] or kind.endswith("Lamp")


@pytest.mark.parametrize("name", ["home00", "home09", "home91", "house-01", "home1", ""])
def test_other_homes_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="no such ALFWorld home"):
        household(name)


# --- texts ------------------------------------------------------------------------------------------------


def test_an_episode_tells_how_its_task_is_done() -> None:
    told = 0
    for name in HOMES:
        house = household(name)
        for episode in house.episodes:
            if episode.won:
                plan = read_plan(house, episode.task, [episode_text(house, "e1", episode)])
                told += play(house, episode.task, plan, limit_of(name, episode.task)).won
    assert told >= 75  # of 78: an agent may take the farther of two things


def test_a_fact_and_a_skill_do_together_what_neither_does_alone() -> None:
    house = household("home05")
    episode = next(
        episode
        for episode in house.episodes
        # a thing that a search in the order of the room finds too late
        if episode.task.family == COOL and not searched(episode.task)
    )
    task = episode.task
    facts, skill = list(place_texts(house, "e1", episode).values()), skill_text(episode, ["e1", "e2"])
    grades = [
        play(house, task, read_plan(house, task, texts), limit_of("home05", task)).won
        for texts in (facts, [skill], [*facts, skill])
    ]
    assert grades == [False, False, True]


def searched(task: Task) -> bool:
    plan = Plan({}, "cool", "Fridge")
    return play(household("home05"), task, plan, limit_of("home05", task)).won


def test_what_happened_in_another_home_says_nothing_of_places_here() -> None:
    house = household("home01")
    task = next(task for task in tasks("home01") if task.target == "Plate")
    here = "In home01, plate 607 stands in cabinet 3."
    assert read_plan(house, task, [here]).places["Plate"] == ("cabinet 3",)
    assert read_plan(house, task, [here.replace("home01", "home02")]).places["Plate"] == ()
    # A text that lost its home comes after those that name it.
    lost = "plate 607: drawer 1"
    assert read_plan(house, task, [lost, here]).places["Plate"] == ("cabinet 3", "drawer 1")


def test_where_a_thing_was_put_is_not_where_it_stands() -> None:
    house = household("home01")
    task = next(task for task in tasks("home01") if task.target == "Plate")
    moved = (
        "home01: move plate 607 to sinkbasin 1; cool plate 607 with fridge 1; take plate 607 from cabinet 3."
    )
    assert read_plan(house, task, [moved]).places["Plate"] == ("cabinet 3",)


@pytest.mark.parametrize(
    ("text", "appliance"),
    [
        ("cool plate 607 with fridge 1", "Fridge"),
        ("cool plate 607 fridge 1", "Fridge"),
        ("cool it with the fridge", "Fridge"),
        ("go to fridge; cooled cup 12 using a fridge", "Fridge"),
        ("home03 episode e1, task: put a cool plate in fridge", ""),
        ("put cool plate fridge", ""),
        ("cool some plate and put it in fridge", ""),
        ("heat plate 607 with microwave 1", ""),
        ("cool plate 607 with spoon 1", ""),
    ],
)
def test_how_a_thing_is_cooled_is_read_from_whole_and_from_shortened_texts(text: str, appliance: str) -> None:
    house = household("home01")
    task = next(task for task in tasks("home01") if task.family == COOL)
    assert read_plan(house, task, [text]).appliance == appliance


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plate",
        "plate 607",
        "fridge 1 fridge 1 plate 607",
        "\x00\ud800 plate 607",
        "home01 " * 500,
        "cool it with fire",
    ],
)
def test_the_reader_takes_any_text(environment: AlfWorld, world: World, text: str) -> None:
    for question in world.measuring[:5]:
        assert environment.g(question, [text], None) in {0.0, 1.0}


# --- the environment --------------------------------------------------------------------------------------


def test_it_is_in_the_registry() -> None:
    assert registry.make("alfworld", None).name == "alfworld"


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_worlds_are_a_function_of_seed_and_size(preset: str) -> None:
    one, other = AlfWorld(None), AlfWorld(None)
    size = one.size(preset)
    made = one.worlds(3, size)
    assert made == other.worlds(3, size)
    assert made != one.worlds(4, size)
    assert len({item.id for item in made[0].items}) == size.items


def test_a_world_is_what_the_size_asks_for(environment: AlfWorld, world: World) -> None:
    size = environment.size("quick")
    assert len(world.items) == size.items
    assert len(world.measuring) == size.measuring >= 30
    assert len(world.stages) == len(world.serving) == len(world.later) == STAGES
    assert all(len(served) == size.serving for served in world.serving)
    assert environment.size("full").measuring >= 60
    kinds = {item.kind for item in world.items}
    assert kinds == {Kind.EPISODE, Kind.MEMORY, Kind.SKILL}
    times = [item.time for item in world.items]
    assert times == sorted(set(times))
    assert {question.category for question in world.measuring} == {"known_place", "unseen_place"}


def test_links_lead_to_earlier_items(world: World) -> None:
    seen: set[str] = set()
    for item in world.items:
        assert set(item.links) <= seen
        assert item.links or item.kind is Kind.EPISODE
        seen.add(item.id)


def test_no_game_is_asked_in_two_roles_or_was_played_before(world: World) -> None:
    asked = [question.id for question in world.measuring]
    asked += [question.id for served in world.serving for question in served]
    asked += [question.id for told in world.later for question in told]
    assert len(asked) == len(set(asked))
    played = {text for item in world.items for text in [item.text.partition("\n")[0]]}
    for question in world.measuring:
        home, _, task = question.text.partition(": ")
        assert not any(line.startswith(home) and task in line for line in played)


def test_provenance_counts_who_played(environment: AlfWorld) -> None:
    environment.worlds(0, environment.size("quick"))
    quick = environment.provenance
    environment.worlds(0, environment.size("full"))
    assert " 0 played by our executor" in quick
    assert " 0 played by our executor" not in environment.provenance


def test_memory_is_what_wins(environment: AlfWorld) -> None:
    for seed in range(2):
        world = environment.worlds(seed, environment.size("quick"))[0]
        full, empty = answered(environment, world), answered(environment, world, newest=0.0)
        half, newest = answered(environment, world, share=0.5), answered(environment, world, newest=0.25)
        assert empty < 0.15
        assert full > 0.75
        assert empty + 0.05 < half < full - 0.2
        assert empty + 0.1 < newest < full - 0.1


def test_the_extra_step_has_to_be_remembered(environment: AlfWorld, world: World) -> None:
    """Every place at hand and no word of what else to do: only plain tasks are won."""
    for question in world.measuring:
        home, family = question.id.split("/")[1:3]
        house = household(home)
        told = [f"In {home}, {thing} stands on {place}." for thing, place in house.places.items()]
        if verb_of(family) or family in {LOOK, TWO}:
            assert environment.g(question, told, None) == 0.0


def test_a_small_size_is_honoured(environment: AlfWorld) -> None:
    (world,) = environment.worlds(0, Size(1, 12, 5, 2))
    assert len(world.items) == 12
    assert 1 <= len(world.measuring) <= 5


@pytest.mark.parametrize("size", [Size(0, 10, 5, 2), Size(1, 0, 5, 2), Size(1, 10, 0, 2), Size(1, 10, 5, -1)])
def test_a_size_of_nothing_is_refused(environment: AlfWorld, size: Size) -> None:
    with pytest.raises(InputError):
        environment.worlds(0, size)


def test_an_unknown_preset_is_refused(environment: AlfWorld) -> None:
    with pytest.raises(InputError, match="preset"):
        environment.size("huge")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "q1",
        "alfworld/home01",
        "alfworld/home01/pick_and_place_simple/Moon/Fridge/",
        "alfworld/home99/pick_and_place_simple/Plate/Fridge/",
        "babyai/home01/pick_and_place_simple/Plate/Fridge/",
    ],
)
def test_a_question_of_another_environment_is_refused(environment: AlfWorld, name: str) -> None:
    with pytest.raises(InputError):
        environment.g(Question(name, "home01: put a plate in fridge."), ["text"], None)


class Scripted:
    """A model that answers by rule."""

    name = "scripted"

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.prompts: list[str] = []

    def complete(self, prompt: str, max_tokens: int) -> str:
        self.prompts.append(prompt)
        return self.answer


def cooling() -> tuple[Question, list[str]]:
    """A task of home05 and the fact that it takes; a plate stands where a search comes too late."""
    house = household("home05")
    task = next(task for task in tasks("home05") if task.family == COOL and not searched(task))
    thing = house.of_type(task.target)[0]
    question = Question(f"alfworld/home05/{COOL}/{task.target}/{task.place}/", f"home05: {task.text(0)}.")
    return question, [f"In home05, {thing} stands on {house.places[thing]}."]


def test_a_model_is_asked_for_the_plan(environment: AlfWorld) -> None:
    question, texts = cooling()
    fact = texts[0].partition(", ")[2]
    good = Scripted(f"{fact}\ncool it with fridge")
    assert environment.g(question, texts, good) == 1.0
    (prompt,) = good.prompts
    assert texts[0] in prompt
    assert question.text.partition(": ")[2] in prompt
    assert "fridge 1" in prompt


@pytest.mark.parametrize(
    "answer", ["", "{fact}", "cool it with fridge", "it is in attic 9\nburn it", "plate " * 900]
)
def test_a_model_that_leaves_something_out_does_not_win(environment: AlfWorld, answer: str) -> None:
    question, texts = cooling()
    model = Scripted(answer.format(fact=texts[0]))
    assert environment.g(question, [*texts, "cool it with fridge"], None) == 1.0
    assert environment.g(question, [*texts, "cool it with fridge"], model) == 0.0


def test_a_cell_runs_along_the_cycle(environment: AlfWorld) -> None:
    worlds = environment.worlds(0, Size(1, 40, 12, 3))
    rows = {}
    for policy in ("keep_all", "oldest"):
        cell = Cell("alfworld", policy, 0, "definition1", "quick")
        rows[policy] = run_cell(cell, paths.path("definition1"), environment, worlds, bench_worlds.make, None)
    trough = {policy: row[3]["C"] for policy, row in rows.items()}
    assert isinstance(trough["keep_all"], float)
    assert isinstance(trough["oldest"], float)
    assert trough["keep_all"] > trough["oldest"]
    assert all(row["violations"] == 0 for row in rows["oldest"])


def test_a_task_names_what_its_text_says() -> None:
    assert Task(TWO, "Vase", "Cabinet", "").text(1) == "find two vase and put them in cabinet"
