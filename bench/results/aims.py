"""What we want to see (aims): each with its bound, our figure, and whether the run kept it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.report import Aim, at_least, at_most
from bench.results import paper
from bench.results.cycles import Cycle, Run
from bench.results.stats import mean_of
from bench.results.tables import (
    BUDGETED,
    DEFINITION_1,
    OURS,
    PACKED,
    averages,
    b_star,
    strongest,
)
from bench.runner.paths import FRONTIER

_TEN = "cycles10"


def figures(run: Run, theory: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Aim]]:
    """Figures by name, and an aim for those that have one; what did not run is in neither."""
    found: dict[str, float] = {}
    aims: dict[str, Aim] = {}

    def tell(name: str, value: float | None, aim: Aim | None = None) -> None:
        if value is not None:
            found[name] = value
            if aim is not None:
                aims[name] = aim

    cycles = [cycle for cycle in run.of(DEFINITION_1, OURS) if cycle.environment in paper.SEVEN]
    d, h, retention = (_mean(cycles, name) for name in ("deficit", "hysteresis", "retention"))
    if d is not None and h is not None and retention is not None:
        tell("mean_D_points", d, at_most(d, 0.3, "points (paper 0.5)"))
        tell("mean_H", h, at_most(h, 0.008, "(paper 0.013)"))
        tell("trough_retention", retention, at_least(retention, 0.95, "(paper 0.841)"))
    _lead(run, "lead_over_best_baseline_points", BUDGETED, 6.0, "points (paper 4.6)", tell)
    _lead(run, "lead_over_best_packed_points", PACKED, 3.0, "points", tell)
    stars = [star for name in paper.SEVEN if (star := _star(run, name)) is not None]
    if stars:
        median = sorted(stars)[len(stars) // 2]
        tell("median_b_star_percent", 100 * median, at_most(100 * median, 30, "% (paper 50)"))
    violations = sum(cycle.total("violations") for cycle in run.cycles)
    tell("budget_violations", violations, at_most(violations, 0))
    if cycles:
        share = _scheduler_share(cycles)
        tell("scheduler_share_percent", share, at_most(share, 1.0, "% of stage time (paper 3.4)"))
    tokens = [
        _over_rho(cycle) for cycle in run.cycles if cycle.policy.startswith(("crystalmem", "paper", "ablate"))
    ]
    if tokens:
        most = max(tokens)
        tell("most_tokens_over_rho", most, at_most(most, 0.0, "tokens above rho x n"))
    last = [d for cycle in run.of(_TEN, OURS) for d in [cycle.deficit]]
    if last:
        mean = sum(last) / len(last)
        tell("D_after_ten_cycles_points", mean, at_most(mean, 0.5, "points"))
    for name, bound in (("spearman", 0.80), ("top_decile", 0.85)):
        value = theory.get("influence", {}).get(f"best_{name}")
        if isinstance(value, float):
            tell(f"influence_{name}", value, at_least(value, bound))
    return found, aims


def _mean(cycles: list[Cycle], value: str) -> float | None:
    mean = averages(cycles, value)
    return None if mean is None else mean.mean


def _lead(run: Run, name: str, policies: tuple[str, ...], bound: float, unit: str, tell: Any) -> None:
    best, value = strongest(run, DEFINITION_1, policies)
    ours = averages((c for c in run.of(DEFINITION_1, OURS) if c.environment in paper.SEVEN), "restored")
    if best is not None and ours is not None:
        lead = ours.mean - value
        tell(name, lead, at_least(lead, bound, unit))


def _star(run: Run, name: str) -> float | None:
    best, reference = strongest(run, "constant-100", BUDGETED, name)
    if best is None:
        return None
    held = [mean_of(c.restored for c in run.of(f"constant-{round(100 * b)}", OURS, name)) for b in FRONTIER]
    # Not reached at all counts as more than everything.
    return b_star([mean.mean if mean is not None else None for mean in held], reference) or 2.0


def _scheduler_share(cycles: list[Cycle]) -> float:
    spent = sum(cycle.total("scheduler_s") for cycle in cycles)
    stage = sum(
        cycle.total(name) for cycle in cycles for name in ("budget_s", "measure_s", "serve_s", "write_s")
    )
    return 100 * spent / stage if stage else 0.0


def _over_rho(cycle: Cycle) -> float:
    """Most tokens that a stage spent on regeneration above its cap of the stage before; 0 or less is kept."""
    rows = cycle.rows
    return max(
        (
            float(row.get("regeneration_tokens") or 0) - float(row.get("regeneration_cap_tokens") or 0)
            for row in rows
            if row.get("regeneration_tokens")
        ),
        default=0.0,
    )
