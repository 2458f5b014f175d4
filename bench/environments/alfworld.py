"""ALFWorld: tasks in homes that the agent knows; done or not within 1.5 times the fewest steps.

Real: eight homes on ALFWorld's floor plans and 80 episodes that its engine played (`bench.record_homes`), the
task texts, and the domain, which `make test-engines` holds against the engine. Ours: the furnishing, further
homes on the same plans with episodes that our executor of the domain played, the wording of experience, and
the questions' games.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.environments.alfworld_homes import Household, household
from bench.environments.alfworld_player import limit_of, play
from bench.environments.alfworld_texts import read_plan
from bench.environments.alfworld_tours import game_of, tour
from bench.environments.contract import Model, Question, Size, World
from shared.errors import Code, InputError

_SIZES = {"quick": Size(1, 100, 50, 12), "full": Size(1, 280, 100, 24)}
_PLAN_TOKENS = 160
_PROMPT = """You control a household robot. What it remembers:
{texts}

Home: {home}. Its places: {places}.
Task: {task}
Answer with what the memories say and nothing else, in at most five lines; leave out what they do not say:
<thing>: <the place where it was seen, with its number> (a line for each thing that the task needs)
<heat, cool or clean> it with <appliance> (if the task wants that)
use <lamp> (if the task wants that)
do it twice (if the task wants two things)"""


class AlfWorld:
    """bench.environments.contract.Environment. The recording comes with the package: `data` is not needed."""

    name = "alfworld"
    hits = 10
    hit_bytes = 4096

    def __init__(self, data: Path | None) -> None:
        self._recorded = self._played = 0

    @property
    def provenance(self) -> str:
        """Of the worlds that were made last: episodes of the engine, and of our executor."""
        return (
            f"ALFWorld 0.4.2: homes generated on its floor plans; {self._recorded} episodes recorded by the"
            f" engine, {self._played} played by our executor of the same domain; it plays the questions too"
        )

    def size(self, preset: str) -> Size:
        """quick: 7 homes; full: 20."""
        if preset not in _SIZES:
            raise InputError(Code.BAD_REQUEST, "no such preset", preset=preset, hint="quick or full")
        return _SIZES[preset]

    def worlds(self, seed: int, size: Size) -> tuple[World, ...]:
        """`size.worlds` tours over homes."""
        if min(size.worlds, size.items, size.measuring) < 1 or size.serving < 0:
            raise InputError(Code.BAD_REQUEST, "a size counts from 1", size=size)
        made = [tour(f"{self.name}/{seed}/{number}", size) for number in range(size.worlds)]
        self._recorded = sum(one.recorded for one in made)
        self._played = sum(one.played for one in made)
        return tuple(one.world for one in made)

    def g(self, question: Question, texts: Sequence[str], model: Model | None) -> float:
        """1 when a plan from these texts does the task in time, else 0; a model is asked for the plan."""
        home, task = game_of(question.id)
        house = household(home)
        if model is not None:
            texts = (model.complete(_prompt(house, question, texts), _PLAN_TOKENS),)
        return float(play(house, task, read_plan(house, task, texts), limit_of(home, task)).won)


def _prompt(house: Household, question: Question, texts: Sequence[str]) -> str:
    return _PROMPT.format(
        texts="\n\n".join(texts) or "(nothing)",
        home=house.home.name,
        places=", ".join(house.home.receptacles),
        task=question.text.partition(": ")[2],
    )
