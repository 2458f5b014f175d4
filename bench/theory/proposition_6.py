"""Proposition 6: with exact regeneration, no eviction and caps that bind nothing the loop closes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from bench.environments.contract import Environment, World
from bench.policies.edge import EdgeArm
from bench.policies.edge_arms import spec
from bench.results.markdown import number, table
from bench.runner.asking import asked
from bench.theory.check import Check
from shared.memory.cycle import DEFINITION_1, LoopPoint, deficit, hysteresis, loop_point

SERVED_TOKENS = 10**7
"""Serving tokens told a stage, so that rho caps nothing."""


TROUGHS = (0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
"""Tried from the deepest: the first that evicts nothing meets the proposition's condition."""


def cycle(
    environment: Environment, world: World, b0_bytes: float, trough: float = TROUGHS[0], seed: int = 0
) -> tuple[list[LoopPoint], int]:
    """A cycle without writes under the oracle of `ablate:exact`: its points, and how many went."""
    points: list[LoopPoint] = []
    evicted = 0
    with closing(EdgeArm("ablate:exact", spec("ablate:exact", seed), seed)) as arm:
        arm.set_budget(b0_bytes)
        for item in world.stages[0]:
            arm.write(item)
        for at, b in enumerate(max(b, trough) for b in DEFINITION_1):
            evicted += len(arm.set_budget(b * b0_bytes).evicted)
            grades = [
                asked(arm, environment, question, None, record=False).g
                for question in world.measuring
                if not question.needs_model
            ]
            points.append(loop_point(b, grades))
            for question in world.serving[at]:
                one = asked(arm, environment, question, None, record=True)
                for found in one.recalls:
                    if found.ticket:
                        arm.outcome(found.ticket, one.g, SERVED_TOKENS)
    return points, evicted


def check(lives: Sequence[tuple[Environment, World, float]]) -> Check:
    """By environment; the trough where the paper's ladder evicts nothing is told with the figures."""
    rows, figures = [], {}
    for environment, world, b0_bytes in lives:
        for b in TROUGHS:
            points, evicted = cycle(environment, world, b0_bytes, b)
            if not evicted:
                break
        trough = min(point.capability for point in points)
        h = hysteresis(points) if points[0].capability > 0 else 0.0
        figures[f"{environment.name}_D"], figures[f"{environment.name}_H"] = deficit(points), h
        rows.append(
            [
                environment.name,
                f"{100 * b:.0f} %",
                number(points[0].capability),
                number(trough),
                number(points[-1].capability),
                number(deficit(points)),
                number(h, 4),
                str(evicted),
            ]
        )
    header = ["environment", "trough", "C first", "C trough", "C restored", "D", "H", "evicted"]
    text = (
        "Paper ladder, an oracle that knows every original, no writes during the cycle, serving tokens that"
        " make rho bind nothing; the deepest trough (of 25 % and up) at which nothing is evicted.\n\n"
        + table(header, rows)
    )
    return Check("proposition_6", "Proposition 6: exact regeneration closes the loop", text, figures)
