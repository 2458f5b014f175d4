"""Elastic cycles: schedules, loop points, hysteresis area H and residual deficit D (paper, section 3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import Code, InputError

DEFINITION_1: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25, 0.5, 0.75, 1.0)
DEEP: tuple[float, ...] = (1.0, 0.5, 0.2, 0.05, 0.2, 0.5, 1.0)

SCHEDULES: dict[str, tuple[float, ...]] = {"definition1": DEFINITION_1, "deep": DEEP}

_POINTS = 100.0
"""Capability is told on a scale of 0-100, so deficits read in points."""
_Z95 = 1.959964


@dataclass(frozen=True)
class LoopPoint:
    """Where a stage stood: budget fraction, capability (0-100), graded outcomes, 95 % interval of C."""

    b: float
    capability: float
    n: int
    interval: tuple[float, float]


def loop_point(b: float, outcomes: Sequence[float]) -> LoopPoint:
    """The stage's mean graded outcome x 100, with a normal 95 % interval (0-100 under two outcomes)."""
    n = len(outcomes)
    if n == 0:
        raise InputError(Code.BAD_REQUEST, "a loop point needs at least one graded outcome", b=b)
    mean = math.fsum(outcomes) / n
    if n == 1:
        return LoopPoint(b, mean * _POINTS, n, (0.0, _POINTS))
    variance = math.fsum((g - mean) ** 2 for g in outcomes) / (n - 1)
    half = _Z95 * math.sqrt(variance / n)
    return LoopPoint(b, mean * _POINTS, n, (max(mean - half, 0.0) * _POINTS, min(mean + half, 1.0) * _POINTS))


def hysteresis(points: Sequence[LoopPoint]) -> float:
    """H of Eq. 3: trapezoid area of the loop over first capability times budget span."""
    if len(points) < 2:
        raise InputError(Code.BAD_REQUEST, "a loop needs at least two points", points=len(points))
    budgets = [point.b for point in points]
    span = max(budgets) - min(budgets)
    first = points[0].capability
    if span <= 0.0 or first <= 0.0:
        raise InputError(
            Code.BAD_REQUEST, "H is not defined: no budget span or no capability", span=span, first=first
        )
    area = math.fsum(
        0.5 * (here.capability + after.capability) * (after.b - here.b)
        for here, after in itertools.pairwise(points)
    )
    return abs(area) / (first * span)


def deficit(points: Sequence[LoopPoint]) -> float:
    """D: capability of the first point minus that of the last, in points."""
    if not points:
        raise InputError(Code.BAD_REQUEST, "a loop needs points", points=0)
    return points[0].capability - points[-1].capability
