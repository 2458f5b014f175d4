"""An agent that can search, pick up and put down, and no more: the rest of a task is in its plan or not done.

A plan says where things were seen, what else has to be done to the thing, and how often. It comes from what a
memory returned; without one the agent looks everywhere in the order in which the room was described.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bench.alfworld_games import APPLIANCE
from bench.environments.alfworld_domain import NOTHING, Rooms
from bench.environments.alfworld_homes import LOOK, TWO, Household, Task, household, verb_of

PATIENCE = 1.5
"""Steps that a task may take, as a multiple of the fewest with which this agent can do it."""
_NEVER = 10_000


@dataclass(frozen=True)
class Plan:
    """places: receptacles by type of thing, likeliest first. appliance: a type, of a receptacle or a lamp."""

    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    verb: str = ""
    appliance: str = ""
    times: int = 1


@dataclass(frozen=True)
class Played:
    """What was done, and whether the goal held before the steps ran out."""

    steps: tuple[tuple[str, str], ...]
    won: bool


def play(house: Household, task: Task, plan: Plan, limit: int) -> Played:
    """At most `limit` steps."""
    walker = _Walker(Rooms(house, task), plan, limit)
    walker.run()
    return Played(tuple(walker.steps), walker.rooms.won)


@lru_cache(maxsize=4096)
def fewest_steps(home: str, task: Task) -> int:
    """How many steps the task takes when everything is known."""
    house = household(home)
    verb = "use" if task.family == LOOK else verb_of(task.family)
    appliance = task.lamp or APPLIANCE.get(task.family, ("", ""))[1]
    times = 2 if task.family == TWO else 1
    lamps = tuple(house.places[lamp] for lamp in house.of_type(task.lamp))
    found = _NEVER
    for things in itertools.permutations(house.of_type(task.target), times):
        places = {task.target: tuple(house.places[thing] for thing in things), task.lamp: lamps}
        played = play(house, task, Plan(places, verb, appliance, times), _NEVER)
        if played.won:
            found = min(found, len(played.steps))
    return found


def limit_of(home: str, task: Task) -> int:
    """T: a task counts as done within so many steps."""
    return math.ceil(PATIENCE * fewest_steps(home, task))


class _Walker:
    def __init__(self, rooms: Rooms, plan: Plan, limit: int) -> None:
        self.rooms, self.plan, self._limit = rooms, plan, limit
        self.steps: list[tuple[str, str]] = []
        self._seen: dict[str, str] = {}
        self._goal = next(iter(rooms.house.of_type(rooms.task.place)), "") if rooms.task.place else ""

    def run(self) -> None:
        for _ in range(self.plan.times):
            if self._over() or not self._fetch(self.rooms.task.target):
                return
            self._prepare()
            if self._goal:
                self._visit(self._goal)
                self._do(f"move {self.rooms.held} to {self._goal}")

    def _prepare(self) -> None:
        """The plan's extra step."""
        verb, appliance = self.plan.verb, self.plan.appliance
        if verb == "use":
            lamp = self._find(appliance)
            if lamp:
                self._do(f"use {lamp}")
        elif verb:
            for name in self.rooms.house.of_type(appliance)[:1]:
                self._go(name)
                self._do(f"{verb} {self.rooms.held} with {name}")

    def _fetch(self, kind: str) -> bool:
        thing = self._find(kind)
        return bool(thing) and self._do(f"take {thing} from {self.rooms.at}")

    def _find(self, kind: str) -> str:
        """Stand where a thing of this type is in sight, and name it; "" when there is none."""
        looked: set[str] = set()
        for place in self._order(kind):
            if self._over():
                break
            if place not in looked:
                looked.add(place)
                self._visit(place)
                here = [name for name in self.rooms.visible() if self._wanted(name, kind)]
                if here:
                    return here[0]
        return ""

    def _order(self, kind: str) -> Iterable[str]:
        """Where it was seen in this game, where it is said to be, and everywhere else not yet looked into."""
        receptacles = self.rooms.house.home.receptacles
        yield from [place for name, place in self._seen.items() if self._wanted(name, kind)]
        yield from [place for place in self.plan.places.get(kind, ()) if place in receptacles]
        looked = {command for command, _ in self.steps}
        yield from [name for name in receptacles if f"go to {name}" not in looked]

    def _wanted(self, thing: str, kind: str) -> bool:
        return self.rooms.house.home.belongings[thing] == kind and self._seen.get(thing) != self._goal

    def _visit(self, name: str) -> None:
        self._go(name)
        if name in self.rooms.house.openable:
            self._do(f"open {name}")
        self._seen = {thing: place for thing, place in self._seen.items() if place != name}
        self._seen |= dict.fromkeys(self.rooms.visible(), name)

    def _go(self, name: str) -> None:
        if self.rooms.at != name:
            self._do(f"go to {name}")

    def _do(self, command: str) -> bool:
        """One step; what is not possible costs a step too, but an open door is not opened again."""
        if self._over() or (command.startswith("open ") and self.rooms.at in self.rooms.opened):
            return False
        observation = self.rooms.act(command)
        self.steps.append((command, observation))
        return observation != NOTHING

    def _over(self) -> bool:
        return self.rooms.won or len(self.steps) >= self._limit
