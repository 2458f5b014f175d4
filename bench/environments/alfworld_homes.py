"""The homes of the ALFWorld environment: what the recording says of them, and the tasks they give rise to.

Eight homes and their episodes were recorded in the real engine (`bench.record_homes`). Further homes are the
recorded floor plans with the same things put elsewhere by us.
"""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from bench.alfworld_games import APPLIANCE, FAMILIES, LAMP_SPOTS, LAMPS, Home
from shared.errors import Code, InputError

TWO = "pick_two_obj_and_place"
LOOK = "look_at_obj_in_light"
WORDINGS: Mapping[str, tuple[str, str]] = {
    "pick_and_place_simple": ("put a {obj} in {recep}", "put some {obj} on {recep}"),
    "pick_clean_then_place_in_recep": (
        "put a clean {obj} in {recep}",
        "clean some {obj} and put it in {recep}",
    ),
    "pick_heat_then_place_in_recep": ("put a hot {obj} in {recep}", "heat some {obj} and put it in {recep}"),
    "pick_cool_then_place_in_recep": ("put a cool {obj} in {recep}", "cool some {obj} and put it in {recep}"),
    TWO: ("put two {obj} in {recep}", "find two {obj} and put them in {recep}"),
    LOOK: ("look at {obj} under the {toggle}", "examine the {obj} with the {toggle}"),
}
"""ALFWorld's own task texts."""
_RECORDED = 8
_NAME = re.compile(r"home(\d{2})")


@dataclass(frozen=True)
class Task:
    """A goal by the types it names; `place` is empty for a look, `lamp` for anything else."""

    family: str
    target: str
    place: str
    lamp: str

    def text(self, wording: int) -> str:
        """One of the family's two sentences."""
        names = {"obj": self.target.lower(), "recep": self.place.lower(), "toggle": self.lamp.lower()}
        return WORDINGS[self.family][wording % 2].format(**names)


@dataclass(frozen=True)
class Episode:
    """A played game: (command, observation) in order, and whether the engine called it won."""

    task: Task
    text: str
    intro: str
    steps: tuple[tuple[str, str], ...]
    won: bool
    recorded: bool
    """By the real engine; else by our executor of the same domain."""


@dataclass(frozen=True)
class Household:
    """A home and what stands where before every game. able: thing type to verbs; can: what goes where."""

    home: Home
    places: Mapping[str, str]
    openable: frozenset[str]
    able: Mapping[str, frozenset[str]]
    can: Mapping[str, frozenset[str]]
    episodes: tuple[Episode, ...]

    def of_type(self, kind: str) -> list[str]:
        """Things, or receptacles, of a type, in the home's order."""
        return [
            name for name, its in {**self.home.receptacles, **self.home.belongings}.items() if its == kind
        ]


@lru_cache(maxsize=128)
def household(name: str) -> Household:
    """A home by name: home01 to home08 as recorded, home11 to home88 the same plans furnished anew.

    The last digit of the latter is the floor plan, the first the furnishing. InputError(BAD_REQUEST) for
    any other name.
    """
    match = _NAME.fullmatch(name)
    furnishing, plan = divmod(int(match[1]), 10) if match else (0, 0)
    if not 1 <= plan <= _RECORDED or furnishing > _RECORDED:
        raise InputError(Code.BAD_REQUEST, "no such ALFWorld home", home=name, hint="home01 to home88")
    recorded = _recorded()[plan - 1]
    return recorded if furnishing == 0 else _furnished_anew(recorded, name)


@lru_cache(maxsize=256)
def tasks(name: str) -> tuple[Task, ...]:
    """Every goal of the home's families that does not hold from the start."""
    house = household(name)
    kinds = sorted(set(house.home.receptacles.values()))
    found: list[Task] = []
    for family in FAMILIES[house.home.kind]:
        appliance = APPLIANCE.get(family, ("", ""))[1]
        if appliance and appliance not in kinds:
            continue
        for target in sorted({house.home.belongings[thing] for thing in house.places} - set(LAMPS)):
            found += _tasks_of(house, family, target, appliance, kinds)
    return tuple(found)


def _tasks_of(house: Household, family: str, target: str, appliance: str, kinds: list[str]) -> list[Task]:
    mine = house.of_type(target)
    verb = verb_of(family)
    if (verb and verb not in house.able[target]) or (family == TWO and len(mine) < 2):
        return []
    if family == LOOK:
        return [Task(family, target, "", lamp) for lamp in LAMPS if house.of_type(lamp)]
    taken = {house.home.receptacles[house.places[thing]] for thing in mine}
    return [
        Task(family, target, kind, "")
        for kind in kinds
        if target in house.can[kind] and kind != appliance and kind not in taken
    ]


def verb_of(family: str) -> str:
    """What has to be done to the thing on its way: heat, cool, clean or nothing."""
    return next((verb for verb in ("heat", "cool", "clean") if f"_{verb}_" in family), "")


@lru_cache(maxsize=1)
def _recorded() -> tuple[Household, ...]:
    path = files("bench.environments") / "data" / "alfworld_homes.json.xz"
    told = json.loads(lzma.decompress(path.read_bytes()))
    return tuple(
        Household(
            Home(row["name"].replace("-", ""), 0, row["kind"], row["receptacles"], row["things"]),
            row["places"],
            frozenset(row["openable"]),
            {kind: frozenset(verbs) for kind, verbs in row["able"].items()},
            {kind: frozenset(things) for kind, things in row["can"].items()},
            tuple(
                Episode(
                    Task(played["family"], played["target"], played["place"], played["lamp"]),
                    played["task"],
                    played["intro"],
                    tuple((command, observation) for command, observation in played["steps"]),
                    bool(played["won"]),
                    recorded=True,
                )
                for played in row["episodes"]
            ),
        )
        for row in told["homes"]
    )


def _furnished_anew(recorded: Household, name: str) -> Household:
    rng = random.Random(f"alfworld/{name}")
    places = {}
    for thing in sorted(recorded.places):
        kind = recorded.home.belongings[thing]
        places[thing] = rng.choice(
            [
                receptacle
                for receptacle, its in recorded.home.receptacles.items()
                if (its in LAMP_SPOTS if kind in LAMPS else kind in recorded.can[its])
            ]
        )
    home = Home(name, 0, recorded.home.kind, recorded.home.receptacles, recorded.home.belongings)
    return Household(home, places, recorded.openable, recorded.able, recorded.can, ())
