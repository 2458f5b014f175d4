"""Figures 1, 2 and 4: what a cycle does to each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.results import paper
from bench.results.cycles import Cycle, Run
from bench.results.drawing import FAMILIES, GREY, colour, environments, legend, new, seeds, seven
from bench.results.stats import mean_of
from bench.results.tables import DEFINITION_1

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_1(run: Run, _: Mapping[str, Any]) -> Figure | None:
    """Capability over its pre-squeeze level, at the trough and after the budget has returned."""
    shown = [name for name in FAMILIES if run.of(DEFINITION_1, name)]
    if not shown:
        return None
    figure, (axes,) = new(1, width=7.5)
    for at, policy in enumerate(shown):
        cycles = [cycle for cycle in seven(run.of(DEFINITION_1, policy)) if cycle.first > 0]
        for group, value in enumerate(("trough", "restored")):
            share = mean_of(getattr(cycle, value) / cycle.first for cycle in cycles)
            if share is None:
                continue
            place = group * (len(shown) + 1.5) + at
            axes.bar(place, share.mean, yerr=share.deviation, color=colour(policy), capsize=2, width=0.85)
            axes.text(place, 0.02, f"{share.mean:.2f}", ha="center", fontsize=7, rotation=90)
    handles = [(colour(policy), paper.label(policy)) for policy in shown]
    legend(axes, handles)
    middle = (len(shown) - 1) / 2
    axes.set_xticks([middle, middle + len(shown) + 1.5], ["at the trough (25 %)", "budget back at 100 %"])
    axes.axhline(1.0, color="red", linestyle="--", linewidth=1)
    axes.set_ylim(0, 1.25)
    axes.set_ylabel("capability / capability before the squeeze")
    axes.set_title(
        f"Memory hysteresis ({len(environments(run))} environments, {seeds(run)} seeds)", fontsize=10
    )
    return figure


def figure_2(run: Run, _: Mapping[str, Any]) -> Figure | None:
    """Loop area and residual deficit, mean and deviation over environments."""
    shown = [name for name in FAMILIES if run.of(DEFINITION_1, name)]
    if not shown:
        return None
    figure, panels = new(2)
    for axes, value, text in zip(
        panels,
        ("hysteresis", "deficit"),
        ("(a) hysteresis area H", "(b) residual deficit D, points"),
        strict=True,
    ):
        for at, policy in enumerate(shown):
            by_environment = (
                mean_of(getattr(cycle, value) for cycle in run.of(DEFINITION_1, policy, name))
                for name in environments(run)
            )
            found = mean_of(mean.mean for mean in by_environment if mean is not None)
            if found is not None:
                axes.bar(at, found.mean, yerr=found.deviation, color=colour(policy), capsize=2)
        axes.set_xticks(range(len(shown)), [paper.label(policy) for policy in shown], rotation=40, ha="right")
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set_title(text, fontsize=10)
    return figure


def figure_4(run: Run, _: Mapping[str, Any]) -> Figure | None:
    """Trajectories on LoCoMo and ALFWorld, loops on LoCoMo, the share of the trough's loss recovered."""
    shown = [name for name in ("keep_all", *FAMILIES) if run.of(DEFINITION_1, name)]
    if not shown:
        return None
    figure, panels = new(2, 2)
    first = "locomo" if "locomo" in run.environments(DEFINITION_1) else environments(run)[0]
    for axes, name, letter in zip(panels[:2], (first, "alfworld"), "ab", strict=True):
        for policy in shown:
            capability = _trajectory(run.of(DEFINITION_1, policy, name))[1]
            axes.plot(
                range(1, len(capability) + 1), capability, color=colour(policy), marker="o", markersize=3
            )
        budgets = _trajectory(run.of(DEFINITION_1, shown[0], name))[0]
        steps = axes.twinx()
        steps.step(
            range(1, len(budgets) + 1), [100 * b for b in budgets], where="mid", color=GREY, linewidth=0.8
        )
        steps.set_ylim(0, 105)
        axes.set_title(
            f"({letter}) {paper.ENVIRONMENT_LABELS[name]}: C by stage, budget in grey", fontsize=10
        )
    for policy in shown:
        budgets, capability = _trajectory(run.of(DEFINITION_1, policy, first))
        panels[2].plot([100 * b for b in budgets], capability, color=colour(policy), marker=".")
    panels[2].set_title(f"(c) loops on {paper.ENVIRONMENT_LABELS[first]}", fontsize=10)
    panels[2].set_xlabel("budget, %")
    for policy in shown[1:]:
        panels[3].plot((5, 6, 7), _recovered(run, policy), color=colour(policy), marker="o", markersize=3)
    panels[3].axhline(1.0, color="red", linestyle="--", linewidth=1)
    panels[3].set_title("(d) share of the trough's loss recovered", fontsize=10)
    panels[3].set_xticks((5, 6, 7))
    legend(panels[2], [(colour(policy), paper.label(policy)) for policy in shown])
    return figure


def _trajectory(cycles: Sequence[Cycle]) -> tuple[list[float], list[float]]:
    """Budgets, and mean C by stage."""
    if not cycles:
        return [], []
    stages = range(len(cycles[0].measured))
    budgets = [float(cycles[0].measured[at]["b"]) for at in stages]
    means = [mean_of(cycle.measured[at]["C"] for cycle in cycles) for at in stages]
    return budgets, [mean.mean if mean is not None else float("nan") for mean in means]


def _recovered(run: Run, policy: str) -> list[float]:
    """Share of the loss at stage 4 that stages 5 to 7 have again, over the environments."""
    shares: list[list[float]] = [[], [], []]
    for name in environments(run):
        capability = _trajectory(run.of(DEFINITION_1, policy, name))[1]
        if len(capability) == 7 and capability[0] - capability[3] > 1.0:
            for at in range(3):
                shares[at].append((capability[4 + at] - capability[3]) / (capability[0] - capability[3]))
    return [sum(share) / len(share) if share else float("nan") for share in shares]
