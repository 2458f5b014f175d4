"""Tours of the ALFWorld environment: episodes in homes, what is drawn from them, the games that are asked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from bench.alfworld_agent import Agent
from bench.alfworld_games import Game
from bench.environments import tours
from bench.environments.alfworld_domain import HomeEngine, Rooms
from bench.environments.alfworld_homes import Episode, Task, household, tasks
from bench.environments.alfworld_player import limit_of, play
from bench.environments.alfworld_texts import episode_text, place_texts, read_plan, skill_text
from bench.environments.contract import Question, Size, World
from shared.errors import Code, InputError
from shared.memory.model import Kind

_PLANS = 8
_FURNISHINGS = 8
_ITEMS_A_HOME = 14
_EPISODES_A_HOME = 40
_WINS_FOR_A_SKILL = 2
_PREFIX = "alfworld"


class Tour(NamedTuple):
    """recorded, played: episodes of the engine, and of our executor."""

    world: World
    recorded: int
    played: int


def tour(name: str, size: Size) -> Tour:
    """One recorded home stays unseen; where the size asks for more than seven, homes are furnished anew."""
    rng = random.Random(name)
    plans = rng.sample(range(1, _PLANS + 1), _PLANS)
    unseen = f"home{plans.pop():02d}"
    names = [f"home{10 * times + plan:02d}" for times in range(_FURNISHINGS + 1) for plan in plans]
    homes = names[: max(1, round(size.items / _ITEMS_A_HOME))]
    stream = tours.Stream(name, size.items)
    played = [0, 0]
    wins: dict[str, list[tuple[str, str]]] = {}
    for home, number in tours.visits(homes, {home: _order(home, rng) for home in homes}, rng):
        if stream.full:
            break
        episode, house = episode_of(home, number), household(home)
        played[episode.recorded] += 1
        code = stream.begin(game_id(home, episode.task))
        item = stream.episode(home, episode_text(house, code, episode), place_texts(house, code, episode))
        if episode.won:
            won = wins.setdefault(episode.task.family, [])
            won.append((code, item))
            if len(won) == _WINS_FOR_A_SKILL:
                text = skill_text(episode, [code for code, _ in won])
                stream.write("", text, Kind.SKILL, tuple(item for _, item in won))
    return Tour(tours.world_of(stream, HomeGames(), unseen, size, rng), played[True], played[False])


class HomeGames:
    """bench.environments.tours.Games."""

    def draw(self, place: str, rng: random.Random) -> str:
        return game_id(place, drawn(place, rng))

    def question(self, game: str, rng: random.Random, category: str) -> Question:
        home, task = game_of(game)
        return Question(game, f"{home}: {task.text(rng.randrange(2))}.", category)

    def wins(self, game: str, texts: Sequence[str]) -> bool:
        home, task = game_of(game)
        house = household(home)
        return play(house, task, read_plan(house, task, texts), limit_of(home, task)).won


def game_id(home: str, task: Task) -> str:
    """What the question's text says, and nothing of where things are."""
    return "/".join((_PREFIX, home, task.family, task.target, task.place, task.lamp))


def game_of(game: str) -> tuple[str, Task]:
    """Home and task; InputError(BAD_REQUEST) for what is no game of this environment."""
    parts = game.split("/")
    if len(parts) == 6 and parts[0] == _PREFIX:
        home, task = parts[1], Task(*parts[2:])
        if task in tasks(home):
            return home, task
    raise InputError(
        Code.BAD_REQUEST,
        "not a question of this environment",
        environment=_PREFIX,
        question=game,
        hint="ask one of its worlds' questions",
    )


def drawn(home: str, rng: random.Random) -> Task:
    """A family first, then one of its tasks: as games are drawn for the recording."""
    family = rng.choice(sorted({task.family for task in tasks(home)}))
    return rng.choice([task for task in tasks(home) if task.family == family])


@lru_cache(maxsize=1024)
def episode_of(home: str, number: int) -> Episode:
    """The home's recorded episodes first, then what our executor plays there."""
    house = household(home)
    if number < len(house.episodes):
        return house.episodes[number]
    rng = random.Random(f"{_PREFIX}/{home}/{number}")
    task = drawn(home, rng)
    text = task.text(rng.randrange(2))
    data = {"rooms": Rooms(house, task), "text": text}
    game = Game(task.family, text, task.target, task.place, task.lamp, data)
    record = Agent(HomeEngine(), house.home, game, rng).play(number)
    steps = tuple((step.command, step.observation) for step in record.steps)
    return Episode(task, text, record.intro, steps, record.won, recorded=False)


def _order(home: str, rng: random.Random) -> list[int]:
    """Recorded episodes in a seeded order, then played ones."""
    count = len(household(home).episodes)
    return [*rng.sample(range(count), count), *range(count, _EPISODES_A_HOME)]
