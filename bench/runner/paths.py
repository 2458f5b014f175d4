"""Paths of budgets: the cycle of Definition 1, a deep one, constant provisions, ten cycles in a row."""

from __future__ import annotations

from dataclasses import dataclass

from bench.environments.contract import STAGES
from shared.errors import Code, InputError
from shared.memory.cycle import DEEP, DEFINITION_1

FRONTIER = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
"""Constant provisions of Figure 5 and b*."""
CYCLES_IN_A_ROW = 10


@dataclass(frozen=True)
class Step:
    """One stage: its budget, whether it is measured, which serving sample it gets, which part it then writes.

    written 0 = nothing; later: `later[...]` asked while measuring (0 = none).
    """

    b: float
    measured: bool
    serving: int
    written: int
    later: int


@dataclass(frozen=True)
class Path:
    """Stages in order."""

    name: str
    steps: tuple[Step, ...]


def path(name: str) -> Path:
    """By name: definition1, deep, constant-B (B in percent), cycles10; InputError for any other."""
    if name == "definition1":
        return Path(name, _cycle(DEFINITION_1))
    if name == "deep":
        return Path(name, _cycle(DEEP))
    if name == "cycles10":
        return Path(name, _repeated())
    kind, _, percent = name.partition("-")
    if kind == "constant" and percent.isdigit() and 1 <= int(percent) <= 100:
        return Path(name, _constant(int(percent) / 100))
    raise InputError(
        Code.BAD_REQUEST,
        "no such path of budgets",
        path=name,
        hint="definition1, deep, cycles10 or constant-PERCENT",
    )


def stage_sets(names: str) -> tuple[str, ...]:
    """`--stages`: names separated by commas; `grid` = every constant provision of the frontier."""
    found: list[str] = []
    for name in names.split(","):
        if name.strip() == "grid":
            found += [f"constant-{round(100 * b)}" for b in FRONTIER]
        else:
            found.append(path(name.strip()).name)
    return tuple(dict.fromkeys(found))


def _cycle(budgets: tuple[float, ...]) -> tuple[Step, ...]:
    return tuple(
        Step(b, measured=True, serving=at, written=at + 1 if at + 1 < STAGES else 0, later=at)
        for at, b in enumerate(budgets)
    )


def _constant(b: float) -> tuple[Step, ...]:
    """The stream and traffic of a cycle at one budget; measured at its end."""
    return tuple(
        Step(b, measured=at + 1 == STAGES, serving=at, written=at + 1 if at + 1 < STAGES else 0, later=at)
        for at in range(STAGES)
    )


def _repeated() -> tuple[Step, ...]:
    """Definition 1 ten times: the first cycle writes the stream, the others find it complete.

    Measured where the budget is 1 and at the troughs.
    """
    budgets = DEFINITION_1 + DEFINITION_1[1:] * (CYCLES_IN_A_ROW - 1)
    return tuple(
        Step(
            b,
            measured=b in {max(DEFINITION_1), min(DEFINITION_1)},
            serving=at % STAGES,
            written=at + 1 if at + 1 < STAGES else 0,
            later=0,
        )
        for at, b in enumerate(budgets)
    )
