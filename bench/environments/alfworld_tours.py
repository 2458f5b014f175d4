"""Worlds of the ALFWorld environment: an agent's tour over homes, and new games in homes that it knows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from bench.alfworld_agent import Agent
from bench.alfworld_games import Game
from bench.environments.alfworld_domain import HomeEngine, Rooms
from bench.environments.alfworld_homes import Episode, Task, household, tasks
from bench.environments.alfworld_player import limit_of, play
from bench.environments.alfworld_texts import episode_text, place_texts, read_plan, skill_text
from bench.environments.contract import STAGES, Item, Question, Size, World, cut
from shared.errors import Code, InputError
from shared.memory.model import Kind

_PLANS = 8
_FURNISHINGS = 8
_ITEMS_A_HOME = 14
_VISIT = 2
"""Episodes that the agent plays in a home before it goes on to the next."""
_UNSEEN_SHARE = 0.1
_WINS_FOR_A_SKILL = 2
_EPISODE_S = 600.0
_TRIES = 40

Game_ = tuple[str, Task]


@dataclass
class Tour:
    """Round after round through homes. recorded, played: episodes of the engine, and of our executor."""

    name: str
    size: Size
    recorded: int = 0
    played: int = 0
    _items: list[Item] = field(default_factory=list)
    _home_of: dict[str, str] = field(default_factory=dict)
    """Item to home; skills belong to none."""
    _last: dict[str, str] = field(default_factory=dict)
    _wins: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _noted: set[tuple[str, str]] = field(default_factory=set)
    _asked: set[Game_] = field(default_factory=set)

    def world(self) -> World:
        """The stream and its questions; call once."""
        rng = random.Random(self.name)
        plans = rng.sample(range(1, _PLANS + 1), _PLANS)
        unseen = f"home{plans.pop():02d}"
        names = [f"home{10 * times + plan:02d}" for times in range(_FURNISHINGS + 1) for plan in plans]
        known = names[: max(1, round(self.size.items / _ITEMS_A_HOME))]
        self._live(known, rng)
        stages = cut(self._items)
        told = [self._told(stages, 0, stage) for stage in range(STAGES)]
        measuring = self._draw(told[0], round((1 - _UNSEEN_SHARE) * self.size.measuring), rng, sure=True)
        nothing: dict[str, list[str]] = {unseen: []}
        measuring += self._draw(nothing, self.size.measuring - len(measuring), rng, category="unseen_home")
        serving = [tuple(self._draw(told[stage], self.size.serving, rng)) for stage in range(STAGES)]
        later = [()] + [
            tuple(self._draw(self._told(stages, 1, stage), self.size.serving // 2, rng, sure=True))
            for stage in range(1, STAGES)
        ]
        return World(self.name, stages, tuple(measuring), tuple(serving), tuple(later))

    # --- the stream -----------------------------------------------------------------------------------

    def _live(self, homes: Sequence[str], rng: random.Random) -> None:
        numbers = {home: _order(home, rng) for home in homes}
        played = dict.fromkeys(homes, 0)
        while len(self._items) < self.size.items:
            for home in rng.sample(homes, len(homes)):
                for _ in range(_VISIT):
                    at, order = played[home], numbers[home]
                    self._finish(home, order[at] if at < len(order) else at)
                    played[home] += 1
        del self._items[self.size.items :]

    def _finish(self, home: str, number: int) -> None:
        """An episode, what it found where, and a skill when its family has enough wins."""
        if len(self._items) >= self.size.items:
            return
        episode, house = episode_of(home, number), household(home)
        self.recorded += episode.recorded
        self.played += not episode.recorded
        self._asked.add((home, episode.task))
        code = f"e{self.recorded + self.played:03d}"
        last = (self._last[home],) if home in self._last else ()
        self._last[home] = self._write(home, episode_text(house, code, episode), Kind.EPISODE, last)
        for thing, text in place_texts(house, code, episode).items():
            if (home, thing) not in self._noted:
                self._noted.add((home, thing))
                self._write(home, text, Kind.MEMORY, (self._last[home],))
        if episode.won:
            wins = self._wins.setdefault(episode.task.family, [])
            wins.append((code, self._last[home]))
            if len(wins) == _WINS_FOR_A_SKILL:
                text = skill_text(episode, [name for name, _ in wins])
                self._write("", text, Kind.SKILL, tuple(item for _, item in wins))

    def _write(self, home: str, text: str, kind: Kind, links: tuple[str, ...]) -> str:
        number = len(self._items)
        time = _EPISODE_S * (self.recorded + self.played) + number
        item = Item(f"{self.name}/{number:04d}", text, kind, time, links)
        self._items.append(item)
        self._home_of[item.id] = home
        return item.id

    # --- the questions --------------------------------------------------------------------------------

    def _told(self, stages: Sequence[Sequence[Item]], first: int, last: int) -> dict[str, list[str]]:
        """Home to the skills so far and every text that these stages say of it; silent homes are left out."""
        skills = [item.text for stage in stages[: last + 1] for item in stage if not self._home_of[item.id]]
        told: dict[str, list[str]] = {}
        for item in (item for stage in stages[first : last + 1] for item in stage):
            if self._home_of[item.id]:
                told.setdefault(self._home_of[item.id], list(skills)).append(item.text)
        return told

    def _draw(
        self,
        told: Mapping[str, Sequence[str]],
        count: int,
        rng: random.Random,
        *,
        sure: bool = False,
        category: str = "known_home",
    ) -> list[Question]:
        """At most `count` games, not played or asked before; sure: all that was told would win them."""
        homes = list(told)
        found: list[Question] = []
        for _ in range(_TRIES * count if homes else 0):
            if len(found) >= count:
                break
            home = rng.choice(homes)
            task = drawn(home, rng)
            if (home, task) not in self._asked and (not sure or _wins(home, task, told[home])):
                self._asked.add((home, task))
                found.append(question_of(home, task, rng.randrange(2), category))
        return found


def question_of(home: str, task: Task, wording: int, category: str) -> Question:
    """The id holds what the text says, and nothing of where things are."""
    told = (task.family, task.target, task.place, task.lamp)
    return Question("/".join(("alfworld", home, *told)), f"{home}: {task.text(wording)}.", category)


def game_of(question: Question) -> Game_:
    """Home and task; InputError(BAD_REQUEST) for what is no question of this environment."""
    parts = question.id.split("/")
    if len(parts) == 6 and parts[0] == "alfworld":
        home, task = parts[1], Task(*parts[2:])
        if task in tasks(home):
            return home, task
    raise InputError(
        Code.BAD_REQUEST,
        "not a question of this environment",
        environment="alfworld",
        question=question.id,
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
    rng = random.Random(f"alfworld/{home}/{number}")
    task = drawn(home, rng)
    text = task.text(rng.randrange(2))
    data = {"rooms": Rooms(house, task), "text": text}
    game = Game(task.family, text, task.target, task.place, task.lamp, data)
    record = Agent(HomeEngine(), house.home, game, rng).play(number)
    steps = tuple((step.command, step.observation) for step in record.steps)
    return Episode(task, text, record.intro, steps, record.won, recorded=False)


def _order(home: str, rng: random.Random) -> list[int]:
    """Recorded episodes in a seeded order."""
    count = len(household(home).episodes)
    return rng.sample(range(count), count)


def _wins(home: str, task: Task, texts: Sequence[str]) -> bool:
    house = household(home)
    return play(house, task, read_plan(house, task, texts), limit_of(home, task)).won
