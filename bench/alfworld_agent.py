"""A scripted household agent that plays generated games in the real ALFWorld engine.

Ours: the agent. It walks from receptacle to receptacle in a seeded order, opens what is closed, remembers
what it saw, and does the task once it has seen what the task needs; it gives up when its patience ends.
It knows only what the engine showed it. The engine's: every observation, every admissible command,
whether the task is won, and the state facts from which `Step.revealed` and `Record.places` are taken.
(The engine's own planner is not asked: it took up to a minute of one core for a plan in a kitchen.)
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.alfworld_games import Game, Home

MAX_STEPS = 60
CLOSES = 0.3  # share of opened receptacles that the agent closes again
EXAMINES = 0.5  # share of heated, cooled or cleaned things that the agent looks at
SURVEY = (4, 7)  # receptacles visited before the task is taken up
PATIENCE = (0.85, 1.1)  # share of the receptacles after which it gives up looking
VERBS = {
    "pick_heat_then_place_in_recep": ("heat", "microwave 1"),
    "pick_cool_then_place_in_recep": ("cool", "fridge 1"),
    "pick_clean_then_place_in_recep": ("clean", "sinkbasin 1"),
}
STATES = ("ishot", "iscool", "isclean", "istoggled")


@dataclass(frozen=True)
class Step:
    """A command, the engine's text, and what it showed: (receptacle, things in it by the state facts)."""

    command: str
    observation: str
    revealed: tuple[str, tuple[str, ...]] | None


@dataclass(frozen=True)
class Record:
    """A finished episode."""

    home: str
    index: int
    family: str
    task: str
    intro: str
    steps: tuple[Step, ...]
    won: bool
    places: Mapping[str, str]  # thing -> receptacle at the end
    held: str  # what the agent still holds, or ""
    states: Mapping[str, tuple[str, ...]]  # thing -> the predicates of STATES that hold at the end


@dataclass
class Agent:
    """One run of one game."""

    env: Any
    home: Home
    game: Game
    rng: random.Random
    state: Any = None
    done: bool = False
    at: str = ""
    seen: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def play(self, index: int) -> Record:
        self.env.load(self.game.data)
        self.state = self.env.reset()
        intro = str(self.state["feedback"])
        self._survey()
        for _ in range(2 if self.game.family == "pick_two_obj_and_place" else 1):
            if not self.done:
                self._serve()
        facts = _facts(self.state)
        held = next((args[1] for name, args in facts if name == "holds"), "")
        states: dict[str, tuple[str, ...]] = {}
        for name, args in sorted(facts):
            if name in STATES:
                states[args[0]] = (*states.get(args[0], ()), name)
        places = _places(facts)
        task = self.game.task
        return Record(
            self.home.name,
            index,
            self.game.family,
            task,
            intro,
            tuple(self.steps),
            bool(self.state["won"]),
            places,
            held,
            states,
        )

    def _survey(self) -> None:
        """Visit receptacles until the quota is met and the task's things are seen, or patience ends."""
        names = list(self.home.receptacles)
        self.rng.shuffle(names)
        quota = self.rng.randint(*SURVEY)
        patience = max(quota, round(len(names) * self.rng.uniform(*PATIENCE)))
        for i, name in enumerate(names[:patience]):
            if i >= quota and self._ready():
                return
            self._visit(name)
            if self.rng.random() < CLOSES:
                self._do(f"close {name}")

    def _ready(self) -> bool:
        wanted = 2 if self.game.family == "pick_two_obj_and_place" else 1
        lamp_seen = not self.game.lamp or self._find(self.game.lamp) != ""
        return lamp_seen and len(self._targets()) >= wanted

    def _serve(self) -> None:
        """Take one target through the family's step to its place."""
        targets = self._targets()
        if not targets:
            return
        thing = self.rng.choice(targets)
        self._visit(self.seen[thing])
        if not self._do(f"take {thing} from {self.seen[thing]}"):
            return
        if self.game.lamp:
            self._light()
            return
        verb, appliance = VERBS.get(self.game.family, ("", ""))
        if verb:
            self._go(appliance)
            if not self._do(f"{verb} {thing} with {appliance}"):
                self._visit(appliance)
                self._do(f"{verb} {thing} with {appliance}")
            if self.rng.random() < EXAMINES:
                self._do(f"examine {thing}")
        place = self.rng.choice(self._goal_places())
        for name in self._goal_places():
            place = name if any(self.seen.get(t) == name for t in self._of_type(self.game.target)) else place
        self._visit(place)
        self._do(f"move {thing} to {place}")
        self.seen[thing] = place

    def _light(self) -> None:
        lamp = self._find(self.game.lamp)
        if lamp:
            self._visit(self.seen[lamp])
            self._do(f"use {lamp}")

    def _visit(self, name: str) -> None:
        self._go(name)
        self._do(f"open {name}")

    def _go(self, name: str) -> None:
        if self.at != name and self._do(f"go to {name}"):
            self.at = name

    def _do(self, command: str) -> bool:
        """Give the engine a command if it admits it; note what the step showed."""
        if self.done or command not in self.state["admissible_commands"]:
            return False
        self.state, _, self.done = self.env.step(command)
        revealed = None
        if command.startswith(("go to ", "open ")):
            name = command.removeprefix("go to ").removeprefix("open ")
            facts = _facts(self.state)
            if ("openable", (name,)) not in facts or ("opened", (name,)) in facts:
                revealed = (
                    name,
                    tuple(sorted(thing for thing, place in _places(facts).items() if place == name)),
                )
                self.seen = {t: p for t, p in self.seen.items() if p != name} | dict.fromkeys(
                    revealed[1], name
                )
        self.steps.append(Step(command, str(self.state["feedback"]), revealed))
        self.done = bool(self.done) or len(self.steps) >= MAX_STEPS
        return True

    def _of_type(self, kind: str) -> list[str]:
        return sorted(thing for thing in self.seen if self.home.belongings[thing] == kind)

    def _targets(self) -> list[str]:
        places = self._goal_places()
        return [thing for thing in self._of_type(self.game.target) if self.seen[thing] not in places]

    def _goal_places(self) -> list[str]:
        return sorted(name for name, kind in self.home.receptacles.items() if kind == self.game.place)

    def _find(self, kind: str) -> str:
        return next(iter(self._of_type(kind)), "")


def start_engine() -> Any:
    """The engine's PDDL environment with our names: the symbol `cup_2` is called `cup 2`."""
    textworld = importlib.import_module("textworld")
    envs = importlib.import_module("textworld.envs")
    infos = textworld.EnvInfos(won=True, admissible_commands=True, facts=True)
    return _named(textworld.core.Wrapper)(envs.PddlEnv(infos))


def _named(wrapper: Any) -> Callable[[Any], Any]:
    def load(self: Any, data: Mapping[str, Any]) -> None:
        wrapper.load(self, data)
        for info in self._entity_infos.values():
            info.name = info.id.replace("_", " ")

    made: Callable[[Any], Any] = type("HomeNames", (wrapper,), {"load": load})
    return made


def _facts(state: Any) -> set[tuple[str, tuple[str, ...]]]:
    return {(fact.name, tuple(argument.name for argument in fact.arguments)) for fact in state["facts"]}


def _places(facts: set[tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    return {args[0]: args[1] for name, args in sorted(facts) if name == "inreceptacle"}
