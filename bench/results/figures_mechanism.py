"""Figure 6: rungs by stage, the influence estimator, the gate, the bound of Proposition 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.results import paper
from bench.results.cycles import Cycle, Run
from bench.results.drawing import GREY, colour, new, seven
from bench.results.tables import DEFINITION_1, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RUNGS = ("full", "packed", "condensed", "compressed", "outline", "skeletal", "trace")


def figure_6(run: Run, theory: Mapping[str, Any]) -> Figure | None:
    """Composition by stage, the influence estimator, the gate, Proposition 3's bound."""
    cycles = seven(run.of(DEFINITION_1, OURS))
    if not cycles:
        return None
    figure, panels = new(2, 2)
    _composition(panels[0], cycles)
    _scatter(
        panels[1],
        theory.get("influence", {}).get("points", []),
        "(b) influence (x) against leave-one-out (y)",
        diagonal=False,
    )
    _rejections(
        panels[2],
        [*seven(run.of(DEFINITION_1, "crystalmem")), *seven(run.of(DEFINITION_1, "paper"))],
    )
    _scatter(
        panels[3],
        theory.get("proposition_3", {}).get("points", []),
        "(d) deficit (y) against Prop. 3's bound (x)",
        diagonal=True,
    )
    return figure


def _composition(axes: Axes, cycles: Sequence[Cycle]) -> None:
    stages = sorted({int(row["stage"]) for cycle in cycles for row in cycle.rows})
    base = [0.0] * len(stages)
    for number, rung in enumerate(RUNGS):
        shares = []
        for stage in stages:
            rows = [row for cycle in cycles for row in cycle.rows if row["stage"] == stage]
            counts = [sum(float(row.get(f"rung_{name}") or 0) for row in rows) for name in RUNGS]
            shares.append(counts[number] / max(sum(counts), 1.0))
        if any(shares):
            axes.bar(stages, shares, bottom=base, label=rung, width=0.9)
        base = [low + share for low, share in zip(base, shares, strict=True)]
    axes.legend(fontsize=7, loc="lower left")
    axes.set_title("(a) live entries by rung and stage", fontsize=10)


def _rejections(axes: Axes, cycles: Sequence[Cycle]) -> None:
    origins = ("compressed", "skeletal", "trace")
    for at, origin in enumerate(origins):
        refused = sum(cycle.total(f"rejected_{origin}") for cycle in cycles)
        admitted = sum(cycle.total(f"promoted_{origin}") for cycle in cycles)
        if refused + admitted:
            axes.bar(at, 100 * refused / (refused + admitted), color=colour(OURS))
        axes.bar(at + 0.3, paper.GATE_REJECTED[origin], color=GREY, width=0.25)
    axes.set_xticks(range(len(origins)), origins)
    axes.set_title("(c) drafts refused, % (grey: the paper)", fontsize=10)


def _scatter(axes: Axes, points: Sequence[Sequence[float]], title: str, *, diagonal: bool) -> None:
    axes.scatter([p[0] for p in points], [p[1] for p in points], s=6, color=colour(OURS))
    if diagonal and points:
        most = max(max(p[:2]) for p in points)
        axes.plot([0, most], [0, most], color=GREY, linewidth=0.8)
    axes.set_title(title if points else f"{title}: not run", fontsize=10)
