"""Figures 5 and 7: constant provisions, the compute cap, the number of rungs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.results import paper
from bench.results.cycles import Run
from bench.results.drawing import FAMILIES, GREY, colour, environments, legend, new, seven
from bench.results.stats import mean_of
from bench.results.tables import DEFINITION_1, OURS, PAPERS, averages
from bench.runner.paths import FRONTIER

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_5(run: Run, _: Mapping[str, Any]) -> Figure | None:
    """Capability against a constant provision."""
    shown = [name for name in FAMILIES if run.of("constant-50", name)]
    if not shown:
        return None
    figure, panels = new(2)
    percents = [round(100 * b) for b in FRONTIER]
    for policy in shown:
        found = [averages(seven(run.of(f"constant-{p}", policy)), "restored") for p in percents]
        points = [(p, mean) for p, mean in zip(percents, found, strict=True) if mean is not None]
        axes = panels[0]
        axes.plot([p for p, _ in points], [m.mean for _, m in points], color=colour(policy), marker="o")
        low = [m.mean - m.deviation for _, m in points]
        high = [m.mean + m.deviation for _, m in points]
        axes.fill_between([p for p, _ in points], low, high, color=colour(policy), alpha=0.15)
    bound = averages(seven(run.of("constant-100", "keep_all")), "restored")
    if bound is not None:
        panels[0].axhline(bound.mean, color="black", linestyle="--", linewidth=1)
    for policy in (OURS, "curator"):
        for name in environments(run, "constant-50"):
            means = [mean_of(c.restored for c in run.of(f"constant-{p}", policy, name)) for p in percents]
            values = [mean.mean if mean is not None else float("nan") for mean in means]
            panels[1].plot(percents, values, color=colour(policy), linewidth=0.8, alpha=0.7)
    panels[0].set_title("(a) mean over the environments; dashed: keep-all", fontsize=10)
    panels[1].set_title("(b) by environment: CrystalMem and CURATOR", fontsize=10)
    for axes in panels:
        axes.set_xlabel("budget, %")
    legend(panels[0], [(colour(policy), paper.label(policy)) for policy in shown])
    return figure


def figure_7(run: Run, _: Mapping[str, Any]) -> Figure | None:
    """Restored capability against rho and against the number of rungs."""
    caps = (("ablate:rho_0", 0), ("ablate:rho_5", 5), (PAPERS, 10), ("ablate:rho_20", 20))
    depths = (("ablate:k2", 2), ("ablate:k3", 3), (PAPERS, 4), ("ablate:k6", 6))
    if not any(run.of(DEFINITION_1, name) for name, _ in (*caps[:2], *depths[:2])):
        return None
    figure, panels = new(2)
    for axes, swept, text in zip(
        panels, (caps, depths), ("(a) compute cap rho, %", "(b) rungs K"), strict=True
    ):
        held = [(name, x) for name, x in swept if run.of(DEFINITION_1, name)]
        for environment in environments(run):
            means = [mean_of(c.restored for c in run.of(DEFINITION_1, name, environment)) for name, _ in held]
            values = [mean.mean if mean is not None else float("nan") for mean in means]
            axes.plot([x for _, x in held], values, color=GREY, linewidth=0.8)
        thick = [averages(seven(run.of(DEFINITION_1, name)), "restored") for name, _ in held]
        axes.plot(
            [x for _, x in held],
            [m.mean if m else float("nan") for m in thick],
            color=colour(PAPERS),
            linewidth=2.5,
        )
        axes.set_title(text, fontsize=10)
    return figure
