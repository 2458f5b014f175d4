"""One cell of the bench: an environment, a policy and a seed along a path of budgets; one row a stage."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bench.environments.contract import Environment, Model, Question, World
from bench.policies.contract import Arm, Held, Report
from bench.policies.host import merge
from bench.runner.asking import asked, credit
from bench.runner.paths import Path, Step
from shared.memory.cycle import loop_point

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Cell:
    """What identifies a row: everything else follows from it, the code and the data."""

    environment: str
    policy: str
    seed: int
    path: str
    preset: str
    answerer: str = "reader_free"

    @property
    def id(self) -> str:
        """A file name."""
        parts = (self.path, self.preset, self.answerer, self.environment, self.policy, f"s{self.seed}")
        return "--".join(re.sub(r"[^A-Za-z0-9_.]+", "-", part) for part in parts)


@dataclass
class Seconds:
    """Wall time of a stage's parts."""

    budget: float = 0.0
    measure: float = 0.0
    serve: float = 0.0
    write: float = 0.0


@dataclass
class _Tally:
    """One stage over all worlds."""

    grades: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    by_category: dict[str, list[float]] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    rungs: Counter[str] = field(default_factory=Counter)
    squeezed: Report = field(default_factory=Report)
    written: Report = field(default_factory=Report)
    budget_bytes: float = 0.0
    packed_bytes: float = 0.0
    keep_all_bytes: float = 0.0
    serving_tokens: int = 0
    served: int = 0
    violations: int = 0
    regeneration_tokens: float = 0.0
    cap_tokens: float = 0.0
    scheduler_s: float = 0.0
    seconds: Seconds = field(default_factory=Seconds)


@dataclass
class _Life:
    """A world and the arm that lives through it."""

    world: World
    arm: Arm
    provision_bytes: float


MakeArm = Callable[[str, int], Arm]


def run_cell(
    cell: Cell,
    path: Path,
    environment: Environment,
    worlds: Sequence[World],
    make: MakeArm,
    model: Model | None,
) -> list[dict[str, Value]]:
    """Rows of the stages of `path`, in order; a stage that is not measured has C null."""
    lives = [_born(cell, world, make, number) for number, world in enumerate(worlds)]
    try:
        tallies = [_Tally() for _ in path.steps]
        for life in lives:
            _live(life, path, environment, model, tallies)
    finally:
        for life in lives:
            life.arm.close()
    stand_in = bool(getattr(lives[0].arm, "stand_in", False)) if lives else False
    return [_row(cell, path, at, tally, stand_in) for at, tally in enumerate(tallies)]


def provision_bytes(world: World, make: MakeArm) -> float:
    """B0: what keep-all holds of the entries written before stage 1, by the one meter."""
    arm = make("keep_all", 0)
    try:
        for item in world.stages[0]:
            arm.write(item)
        return arm.held().total
    finally:
        arm.close()


def _born(cell: Cell, world: World, make: MakeArm, number: int) -> _Life:
    return _Life(world, make(cell.policy, 1000 * cell.seed + number), provision_bytes(world, make))


def _live(
    life: _Life, path: Path, environment: Environment, model: Model | None, tallies: Sequence[_Tally]
) -> None:
    """A world's whole life, its figures added to the stages' tallies."""
    arm, world = life.arm, life.world
    arm.set_budget(path.steps[0].b * life.provision_bytes)
    for item in world.stages[0]:
        arm.write(item)
    arm.settle()
    planned_s = arm.spending().scheduler_s
    for step, tally in zip(path.steps, tallies, strict=True):
        budget_bytes = step.b * life.provision_bytes
        tally.budget_bytes += budget_bytes
        with _Timed(tally.seconds, "budget"):
            merge(tally.squeezed, arm.set_budget(budget_bytes))
        tally.violations += _over(arm, budget_bytes)
        held = arm.held()
        tally.held.append(held)
        tally.rungs.update(arm.rungs())
        if step.measured:
            with _Timed(tally.seconds, "measure"):
                _measure(arm, environment, world, step, model, tally)
        with _Timed(tally.seconds, "serve"):
            _serve(arm, environment, world.serving[step.serving], model, tally)
        with _Timed(tally.seconds, "write"):
            for item in world.stages[step.written] if step.written else ():
                merge(tally.written, arm.write(item))
            merge(tally.written, arm.settle())
        tally.violations += _over(arm, budget_bytes)
        spending = arm.spending()
        tally.regeneration_tokens += spending.regeneration_tokens
        tally.cap_tokens += spending.cap_tokens
        tally.scheduler_s += spending.scheduler_s - planned_s
        planned_s = spending.scheduler_s


def _measure(
    arm: Arm, environment: Environment, world: World, step: Step, model: Model | None, tally: _Tally
) -> None:
    """Changes nothing: recorded recalls are serving traffic only."""
    for question, g in _graded(arm, environment, world.measuring, model):
        (tally.changed if question.changed else tally.grades).append(g)
        tally.by_category.setdefault(question.category or "all", []).append(g)
    if step.later:
        tally.later += [g for _, g in _graded(arm, environment, world.later[step.later], model)]


def _graded(
    arm: Arm, environment: Environment, questions: Iterable[Question], model: Model | None
) -> Iterable[tuple[Question, float]]:
    for question in questions:
        if question.needs_model and model is None:
            continue
        yield question, asked(arm, environment, question, model, record=False).g


def _serve(
    arm: Arm, environment: Environment, questions: Iterable[Question], model: Model | None, tally: _Tally
) -> None:
    for question in questions:
        one = asked(arm, environment, question, model, record=True)
        tally.serving_tokens += one.tokens
        tally.served += 1
        credit(arm, one)


def _over(arm: Arm, budget_bytes: float) -> int:
    # Sizes are whole bytes, budgets are not.
    return int(not arm.budget_exempt and arm.held().total > budget_bytes + 1e-6)


def _row(cell: Cell, path: Path, at: int, tally: _Tally, stand_in: bool) -> dict[str, Value]:
    step = path.steps[at]
    row: dict[str, Value] = {
        "environment": cell.environment,
        "policy": cell.policy,
        "seed": cell.seed,
        "path": cell.path,
        "preset": cell.preset,
        "answerer": cell.answerer,
        "stage": at + 1,
        "b": step.b,
        "C": _mean(tally.grades),
        "n": len(tally.grades),
        "C_half_width": _half_width(step.b, tally.grades),
        "C_changed": _mean(tally.changed),
        "n_changed": len(tally.changed),
        "C_later": _mean(tally.later),
        "n_later": len(tally.later),
        "budget_bytes": tally.budget_bytes,
        "served": tally.served,
        "serving_tokens": tally.serving_tokens,
        "violations": tally.violations,
        "evicted": len(tally.squeezed.evicted) + len(tally.written.evicted),
        "demoted": len(tally.squeezed.demoted) + len(tally.written.demoted),
        "promoted": len(tally.squeezed.promoted) + len(tally.written.promoted),
        "merged": len(tally.squeezed.merged) + len(tally.written.merged),
        "model_calls": tally.squeezed.model_calls + tally.written.model_calls,
        "model_tokens": tally.squeezed.model_tokens + tally.written.model_tokens,
        "regeneration_tokens": tally.regeneration_tokens,
        "regeneration_cap_tokens": tally.cap_tokens,
        "scheduler_s": tally.scheduler_s,
        "stand_in": stand_in,
        "budget_s": tally.seconds.budget,
        "measure_s": tally.seconds.measure,
        "serve_s": tally.seconds.serve,
        "write_s": tally.seconds.write,
    }
    for name in ("text", "metadata", "vectors", "residue", "shared", "disk"):
        row[f"held_{name}_bytes"] = sum(getattr(held, name) for held in tally.held)
    row["held_bytes"] = sum(held.total for held in tally.held)
    for rung, count in sorted(tally.rungs.items()):
        row[f"rung_{rung}"] = count
    for report in (tally.squeezed, tally.written):
        for origin, count in report.rejected.items():
            row[f"rejected_{origin}"] = _int(row.get(f"rejected_{origin}")) + count
        for _, origin, _ in report.promoted:
            row[f"promoted_{origin}"] = _int(row.get(f"promoted_{origin}")) + 1
    for category, grades in sorted(tally.by_category.items()):
        row[f"C_by_{category}"] = _mean(grades)
    return row


def _mean(grades: Sequence[float]) -> float | None:
    return 100.0 * math.fsum(grades) / len(grades) if grades else None


def _half_width(b: float, grades: Sequence[float]) -> float | None:
    """Half the 95 % interval of C."""
    if not grades:
        return None
    low, high = loop_point(b, grades).interval
    return (high - low) / 2


def _int(value: Value) -> int:
    return value if isinstance(value, int) else 0


class _Timed:
    """Adds the wall time of a block to a field of Seconds."""

    def __init__(self, seconds: Seconds, part: str) -> None:
        self._seconds, self._part = seconds, part
        self._started = 0.0

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._started
        setattr(self._seconds, self._part, getattr(self._seconds, self._part) + spent)
