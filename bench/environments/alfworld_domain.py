"""ALFWorld's household domain in plain Python: go to, open, close, take, move, heat/cool/clean, use, examine.

It answers a command as the engine does, word by word: tests replay the engine's recorded episodes in it, and
`make test-engines` compares the two step by step. `HomeEngine` has the face of the engine's environment: the
agent of `bench.alfworld_agent` plays in either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.alfworld_games import LAMPS
from bench.environments.alfworld_homes import LOOK, TWO, Household, Task, verb_of

NOTHING = "Nothing happens."
APPLIANCES = {"heat": "Microwave", "cool": "Fridge", "clean": "SinkBasin"}
_STATES = {"heat": "hot", "cool": "cool", "clean": "clean"}
_UNDOES = {"heat": "cool", "cool": "hot"}
_COMMANDS = re.compile(
    r"(?P<verb>go to|open|close|use|examine) (?P<name>\w+ \d+)"
    r"|take (?P<taken>\w+ \d+) from (?P<source>\w+ \d+)"
    r"|move (?P<moved>\w+ \d+) to (?P<goal>\w+ \d+)"
    r"|(?P<treat>heat|cool|clean) (?P<thing>\w+ \d+) with (?P<appliance>\w+ \d+)"
)


class Rooms:
    """One game in a home: where everything is now. The agent stands nowhere until it goes somewhere."""

    def __init__(self, house: Household, task: Task) -> None:
        self.house, self.task = house, task
        self.places = dict(house.places)
        self.at = ""
        self.held = ""
        self.opened: set[str] = set()
        self.states: dict[str, set[str]] = {}

    def act(self, command: str) -> str:
        """The observation; `NOTHING` for what is not possible now, which changes nothing."""
        match = _COMMANDS.fullmatch(command)
        if match is None:
            return NOTHING
        told = match.groupdict()
        if told["taken"]:
            return self._take(told["taken"], told["source"])
        if told["moved"]:
            return self._move(told["moved"], told["goal"])
        if told["treat"]:
            return self._treat(told["treat"], told["thing"], told["appliance"])
        return getattr(self, f"_{told['verb'].replace(' ', '_')}")(told["name"]) or NOTHING

    def visible(self) -> tuple[str, ...]:
        """Things in or on the receptacle where the agent stands, when it can see them."""
        return tuple(self._inside(self.at)) if self.at and self._accessible(self.at) else ()

    @property
    def won(self) -> bool:
        """The goal holds."""
        task, kinds = self.task, self.house.home
        if task.family == LOOK:
            lit = any(
                "on" in self.states.get(name, ())
                for name in self._inside(self.at)
                if self._is(name, task.lamp)
            )
            return lit and bool(self.held) and self._is(self.held, task.target)
        wanted = _STATES.get(verb_of(task.family), "")
        count: dict[str, int] = {}
        for thing, place in self.places.items():
            ready = not wanted or wanted in self.states.get(thing, ())
            if ready and self._is(thing, task.target) and kinds.receptacles[place] == task.place:
                count[place] = count.get(place, 0) + 1
        return max(count.values(), default=0) >= (2 if task.family == TWO else 1)

    def admissible(self) -> list[str]:
        """Every command that is possible now, but look, inventory and help."""
        found = [f"go to {name}" for name in self.house.home.receptacles if name != self.at]
        if not self.at:  # nothing is at hand, and nothing was taken yet
            return found
        found += [f"{verb} {self.at}" for verb in ("open", "close", "examine")]
        found += [f"use {thing}" for thing in self._inside(self.at)]
        found += [f"take {thing} from {self.at}" for thing in self.visible()]
        if self.held:
            found += [f"examine {self.held}", f"move {self.held} to {self.at}"]
            found += [f"{verb} {self.held} with {self.at}" for verb in APPLIANCES]
        return [command for command in found if self._possible(command)]

    def _possible(self, command: str) -> bool:
        trial = Rooms(self.house, self.task)
        trial.places, trial.at, trial.held = dict(self.places), self.at, self.held
        trial.opened, trial.states = set(self.opened), {name: set(its) for name, its in self.states.items()}
        return trial.act(command) != NOTHING

    # --- actions --------------------------------------------------------------------------------------

    def _go_to(self, name: str) -> str:
        if name not in self.house.home.receptacles or name == self.at:
            return NOTHING
        self.at = name
        return f"You arrive at {name}. {self._look(name)}"

    def _open(self, name: str) -> str:
        if name != self.at or name not in self.house.openable or name in self.opened:
            return NOTHING
        self.opened.add(name)
        return f"You open the {name}. {self._look(name)}"

    def _close(self, name: str) -> str:
        if name != self.at or name not in self.opened:
            return NOTHING
        self.opened.discard(name)
        return f"You close the {name}."

    def _take(self, thing: str, source: str) -> str:
        if self.held or source != self.at or thing not in self.visible() or self._lamp(thing):
            return NOTHING
        del self.places[thing]
        self.held = thing
        return f"You pick up the {thing} from the {source}."

    def _move(self, thing: str, goal: str) -> str:
        if thing != self.held or goal != self.at or not self._accessible(goal):
            return NOTHING
        if self.house.home.belongings[thing] not in self.house.can[self.house.home.receptacles[goal]]:
            return NOTHING
        self.places[thing] = goal
        self.held = ""
        return f"You move the {thing} to the {goal}."

    def _treat(self, verb: str, thing: str, appliance: str) -> str:
        kinds = self.house.home
        if thing != self.held or appliance != self.at or verb not in self.house.able[kinds.belongings[thing]]:
            return NOTHING
        if kinds.receptacles[appliance] != APPLIANCES[verb]:
            return NOTHING
        states = self.states.setdefault(thing, set())
        states.add(_STATES[verb])
        states.discard(_UNDOES.get(verb, ""))
        return f"You {verb} the {thing} using the {appliance}."

    def _use(self, thing: str) -> str:
        if not self._lamp(thing) or self.places.get(thing) != self.at:
            return NOTHING
        self.states.setdefault(thing, set()).add("on")
        return f"You turn on the {thing}."

    def _examine(self, name: str) -> str:
        if name == self.at and name in self.house.home.receptacles:
            return self._look(name)
        if not name or name != self.held:  # the engine wants it in hand
            return NOTHING
        states = self.states.get(name, set())
        words = [word for word in ("hot", "cool") if word in states] + ["clean"] * ("clean" in states)
        if words == ["cool"]:
            words = ["cold"]
        return (
            f"This is a {' and '.join(words)} {name}." if words else f"There's nothing special about {name}."
        )

    # --- what is where --------------------------------------------------------------------------------

    def _look(self, name: str) -> str:
        if name in self.house.openable and name not in self.opened:
            return f"The {name} is closed."
        start = f"The {name} is open. In it" if name in self.house.openable else f"On the {name}"
        return f"{start}, you see {_listed(self._inside(name))}."

    def _inside(self, name: str) -> list[str]:
        return sorted(thing for thing, place in self.places.items() if place == name)

    def _accessible(self, name: str) -> bool:
        return name not in self.house.openable or name in self.opened

    def _lamp(self, thing: str) -> bool:
        return self.house.home.belongings.get(thing) in LAMPS

    def _is(self, thing: str, kind: str) -> bool:
        return self.house.home.belongings.get(thing) == kind


def opening(house: Household, text: str) -> str:
    """What a game begins with: the room and the task."""
    room = f"Looking quickly around you, you see {_listed(sorted(house.home.receptacles))}."
    return (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        f"You are in the middle of a room. {room}\n\nYour task is to: {text}."
    )


def _listed(names: list[str]) -> str:
    if len(names) < 2:
        return f"a {names[0]}" if names else "nothing"
    return ", ".join(f"a {name}" for name in names[:-1]) + f", and a {names[-1]}"


@dataclass(frozen=True)
class _Named:
    name: str


@dataclass(frozen=True)
class _Fact:
    name: str
    arguments: tuple[_Named, ...]


class HomeEngine:
    """The engine's environment as `bench.alfworld_agent.Agent` drives it; a game is {"rooms", "text"}."""

    def load(self, data: Mapping[str, Any]) -> None:
        self._rooms: Rooms = data["rooms"]
        self._text = str(data["text"])

    def reset(self) -> dict[str, Any]:
        return self._state(opening(self._rooms.house, self._text))

    def step(self, command: str) -> tuple[dict[str, Any], float, bool]:
        """State, reward, done: as the engine gives them."""
        state = self._state(self._rooms.act(command))
        return state, float(state["won"]), bool(state["won"])

    def _state(self, feedback: str) -> dict[str, Any]:
        rooms = self._rooms
        facts: list[tuple[str, tuple[str, ...]]] = [("inreceptacle", pair) for pair in rooms.places.items()]
        facts += [("openable", (name,)) for name in rooms.house.openable]
        facts += [("opened", (name,)) for name in rooms.opened]
        facts += [("holds", ("agent1", rooms.held))] if rooms.held else []
        return {
            "feedback": feedback,
            "admissible_commands": rooms.admissible(),
            "won": rooms.won,
            "facts": [_Fact(name, tuple(map(_Named, names))) for name, names in facts],
        }
