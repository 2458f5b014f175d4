"""Eq. 5: given the water level, every entry's move is a matter of its own hull alone.

Plans of a real arm's cycle are logged, and each row's target is computed anew from that row by itself and the
level. Rows whose price ties with the level may go either way (Prop. 5's one boundary move); what the guard's
release or last-resort eviction moved is not in Eq. 5, and counted apart.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.environments.contract import Environment, World
from bench.policies.edge import EdgeArm
from bench.policies.edge_arms import EdgeSpec, spec
from bench.results.markdown import table
from bench.theory.check import Check
from shared.memory import crystallize
from shared.memory.cycle import DEFINITION_1
from shared.memory.energy import hull
from shared.memory.model import LADDERS, EvictionMode, Ladder, SweepColumns, SweepPlan

_LAST_OF_THE_HULL = 1


@dataclass(frozen=True)
class Transition:
    """One plan that moved something: rows in all, and of those that Eq. 5 covers how many it tells right."""

    rows: int
    covered: int
    right: int
    ties: int
    level: float

    @property
    def wrong(self) -> int:
        """Neither as predicted nor a tie with the level."""
        return self.covered - self.right - self.ties


def transition(columns: SweepColumns, ladder: Ladder, tau: float, budget_bytes: float) -> Transition:
    """The decision over all rows together beside that over each row alone."""
    decided = crystallize.decide(columns, ladder, budget_bytes, EvictionMode.LAST_RESORT, tau)
    covered = decided.phase <= _LAST_OF_THE_HULL
    level = decided.price[covered].max(initial=0.0)
    alone = hull(columns, ladder, tau, guarded=columns.guarded)
    predicted = _deepest(columns.position, alone.price, level)
    tied = (alone.price == level).any(axis=0)
    right = decided.position == predicted
    return Transition(
        rows=len(columns.number),
        covered=int(covered.sum()),
        right=int((covered & right).sum()),
        ties=int((covered & ~right & tied).sum()),
        level=float(level),
    )


def check(environment: Environment, world: World, b0_bytes: float) -> Check:
    """A cycle of Definition 1 on the product's ladder and on the paper's."""
    rows, figures = [], {}
    for name in ("product", "crystalmem"):
        found = spec(name, 0)
        log = [transition(*plan) for plan in logged(found, world, b0_bytes)]
        covered, right = sum(t.covered for t in log), sum(t.right for t in log)
        ties, wrong = sum(t.ties for t in log), sum(t.wrong for t in log)
        rows.append([found.ladder, str(len(log)), str(covered), str(right), str(ties), str(wrong)])
        figures[f"{found.ladder}_wrong"] = float(wrong)
    header = ["ladder", "plans", "rows", "as predicted alone", "at the level itself", "otherwise"]
    text = (
        f"One cycle of {environment.name}; every plan that moved something. Given the level, a row's target"
        " is a function of that row.\n\n" + table(header, rows)
    )
    return Check("factorisation", "Eq. 5: the stage transition factorises", text, figures)


def logged(found: EdgeSpec, world: World, b0_bytes: float) -> list[tuple[SweepColumns, Ladder, float, float]]:
    """What every moving plan of a cycle looked at."""
    plans: list[tuple[SweepColumns, Ladder, float, float]] = []

    def witness(columns: SweepColumns, tau: float, budget_bytes: float, planned: SweepPlan) -> None:
        if planned.moves:
            plans.append((columns, LADDERS[found.ladder], tau, budget_bytes))

    with closing(EdgeArm("logged", replace(found, witness=witness), 0)) as arm:
        arm.set_budget(b0_bytes)
        for item in world.stages[0]:
            arm.write(item)
        for b in DEFINITION_1:
            arm.set_budget(b * b0_bytes)
    return plans


def _deepest(
    position: NDArray[np.int8], price: NDArray[np.float32], level: np.float32 | float
) -> NDArray[np.int8]:
    """The deepest rung whose marginal price is at most the level; prices do not fall along a hull."""
    target = position.copy()
    for move in range(len(price)):
        target = np.where(price[move] <= level, np.int8(move + 1), target)
    return np.asarray(target, np.int8)
