"""BabyAI, held out: missions in mazes that the agent knows; done or not within 1.5 times the shortest run.

Real: 28 layouts of four BabyAI levels, the missions in minigrid's words, and its bot's runs
(`bench.record_babyai`); `make test-engines` holds the grid's rules against minigrid. Ours: which missions are
asked, the agent that walks, how experience is worded. Nothing is tuned on it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

from bench.environments import sampling, tours
from bench.environments.babyai_grid import Mission, layout, layouts
from bench.environments.babyai_player import wins
from bench.environments.babyai_texts import episode_text, place_texts, read_told
from bench.environments.contract import Model, Question, Size, World
from shared.errors import Code, InputError

_SIZES = {"quick": Size(1, 100, 50, 12), "full": Size(1, 260, 100, 20)}
_ITEMS_A_MAZE = 10
_NOT_IN_VIEW = 15
"""Steps; what a shorter mission wants is nearly in view at the start, and it is not asked."""
_PLAN_TOKENS = 240
_PREFIX = "babyai"
_PROMPT = """You guide a robot in a maze of rooms. What it remembers:
{texts}

Maze: {maze}. Mission: {mission}
Answer with what the memories say of this maze and nothing else; leave out what they do not say.
First a line for each thing that the mission names, then a line for each door of this maze:
<colour> <ball, box, key or door> at (<x>, <y>)"""


class BabyAi:
    """bench.environments.contract.Environment. The recording comes with the package: `data` is not needed."""

    name = "babyai"
    hits = 10
    hit_bytes = 4096
    provenance = (
        "minigrid 3.2.0: 28 layouts of BabyAI's GoTo, Pickup, Open and GoToSeq recorded with missions and its"
        " bot's runs; our agent plays the questions under the same rules"
    )

    def __init__(self, data: Path | None) -> None:
        """The recording is all there is."""

    def size(self, preset: str) -> Size:
        """quick: 10 mazes; full: 26."""
        return sampling.preset(_SIZES, preset)

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """`size.worlds` tours over mazes; InputError where the recording has fewer episodes."""
        if min(size.worlds, size.items, size.measuring) < 1 or size.serving < 0:
            raise InputError(Code.BAD_REQUEST, "a size counts from 1", size=size)
        return tuple(_tour(f"{self.name}/{seed}/{number}", size) for number in range(size.worlds))

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 when an agent that was told this does the mission in time, else 0; a model is asked to read."""
        maze, number = _game_of(question.id)
        if model is not None:
            mission = layout(maze).missions[number].text
            prompt = _PROMPT.format(texts="\n\n".join(texts) or "(nothing)", maze=maze, mission=mission)
            texts = (model.complete(prompt, _PLAN_TOKENS),)
        return float(wins(maze, number, read_told(maze, texts)))


class _Mazes:
    """bench.environments.tours.Games."""

    def draw(self, place: str, rng: random.Random) -> str:
        missions = layout(place).missions
        far = [number for number, mission in enumerate(missions) if len(mission.shortest) >= _NOT_IN_VIEW]
        return _game(place, rng.choice(far))

    def question(self, game: str, rng: random.Random, category: str) -> Question:
        maze, number = _game_of(game)
        return Question(game, f"{maze}: {layout(maze).missions[number].text}.", category)

    def wins(self, game: str, texts: Sequence[str]) -> bool:
        maze, number = _game_of(game)
        return wins(maze, number, read_told(maze, texts))


def _tour(name: str, size: Size) -> World:
    """One maze stays unseen; the others are visited as far as the size goes."""
    rng = random.Random(name)
    names = rng.sample(list(layouts()), len(layouts()))
    unseen = names.pop()
    mazes = names[: max(1, round(size.items / _ITEMS_A_MAZE))]
    stream = tours.Stream(name, size.items)
    for maze, number in tours.visits(mazes, {maze: _episodes(maze, rng) for maze in mazes}, rng):
        if stream.full:
            break
        grid = layout(maze)
        mission = grid.missions[number]
        code = stream.begin(_game(maze, number))
        stream.episode(maze, episode_text(grid, code, mission), place_texts(grid, code, mission))
    if not stream.full:
        raise InputError(
            Code.BAD_REQUEST,
            "the BabyAI recording has not so many items",
            items=size.items,
            most=len(stream.items),
        )
    return tours.world_of(stream, _Mazes(), unseen, size, rng)


def _episodes(maze: str, rng: random.Random) -> list[int]:
    """The missions that the bot played as it is, in a seeded order."""
    played = [number for number, mission in enumerate(layout(maze).missions) if mission.played]
    return rng.sample(played, len(played))


def _game(maze: str, number: int) -> str:
    return f"{_PREFIX}/{maze}/{number}"


def _game_of(game: str) -> tuple[str, int]:
    """Maze and number of the mission; InputError(BAD_REQUEST) for what is no game of this environment."""
    prefix, _, rest = game.partition("/")
    maze, _, number = rest.partition("/")
    missions: Sequence[Mission] = layouts()[maze].missions if prefix == _PREFIX and maze in layouts() else ()
    if re.fullmatch(r"[0-9]{1,3}", number) and int(number) < len(missions):
        return maze, int(number)
    raise InputError(
        Code.BAD_REQUEST,
        "not a question of this environment",
        environment=_PREFIX,
        question=game,
        hint="ask one of its worlds' questions",
    )
