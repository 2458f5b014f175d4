"""loop.png: capability against budget, one loop per arm, one panel per cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from crystalmem.demo.results import ArmResult, CycleResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Distinguishable with the common colour-vision deficiencies (Okabe and Ito), darkest for the reference.
COLOURS = {
    "keep_all": "#000000",
    "lru": "#D55E00",
    "lru_packed": "#E69F00",
    "paper": "#CC79A7",
    "product": "#56B4E9",
    "product_archive": "#0072B2",
    "paper_llm": "#009E73",
}
LABELS = {
    "keep_all": "keep-all",
    "lru": "LRU",
    "lru_packed": "LRU, packed",
    "paper": "CrystalMem paper",
    "product": "CrystalMem product",
    "product_archive": "CrystalMem + archive",
    "paper_llm": "CrystalMem paper + model",
}
CYCLE_TITLES = {"definition1": "Definition 1 (trough 25 %)", "deep": "Deep cycle (trough 5 %)"}
# Where loops lie on each other, a wider pale line under a narrow dark one keeps both visible.
WIDTHS = {"keep_all": 6.0, "product": 3.6, "product_archive": 1.4}
_LABEL_GAP = 0.045


@dataclass(frozen=True)
class _Loop:
    arm: str
    budgets: tuple[float, ...]
    capability: tuple[float, ...]


def draw(cycles: Mapping[str, CycleResult], path: Path) -> None:
    """Write the picture; matplotlib is loaded here only, without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.6 * len(cycles), 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(cycles), sharey=True, squeeze=False)[0]
    for axes, (name, cycle) in zip(panels, cycles.items(), strict=True):
        _panel(axes, CYCLE_TITLES.get(name, name), cycle.arms)
    panels[0].set_ylabel("capability C (mean share of the gold answer found x 100)")
    figure.suptitle(
        "Squeeze and regrow: filled = shrinking, open = growing, star = end of the cycle", fontsize=10
    )
    figure.savefig(path, dpi=130)


def _panel(axes: Axes, title: str, arms: Mapping[str, ArmResult]) -> None:
    loops = [
        _Loop(name, tuple(row.b for row in arm.stages), tuple(row.C for row in arm.stages))
        for name, arm in arms.items()
    ]
    for loop in loops:
        _draw_loop(axes, loop)
    low = min(min(loop.capability) for loop in loops)
    high = max(max(loop.capability) for loop in loops)
    room = max(high - low, 1.0)
    axes.set_ylim(low - 0.06 * room, high + 0.06 * room)
    axes.set_xlim(0.0, 1.46)
    axes.set_xticks([0.05, 0.25, 0.5, 0.75, 1.0])
    axes.set_xlabel("budget in force, share of B0")
    axes.set_title(title, fontsize=11)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    _label_ends(axes, loops, 1.12 * room)


def _draw_loop(axes: Axes, loop: _Loop) -> None:
    colour, width = COLOURS.get(loop.arm, "#777777"), WIDTHS.get(loop.arm, 1.8)
    pale = 0.25 if loop.arm == "keep_all" else 0.9
    axes.plot(
        loop.budgets, loop.capability, color=colour, linewidth=width, alpha=pale, solid_joinstyle="round"
    )
    trough = loop.budgets.index(min(loop.budgets))
    marker = 26.0
    axes.scatter(loop.budgets[: trough + 1], loop.capability[: trough + 1], marker, color=colour, zorder=3)
    axes.scatter(
        loop.budgets[trough + 1 :],
        loop.capability[trough + 1 :],
        marker,
        facecolor="white",
        edgecolor=colour,
        zorder=3,
    )
    axes.scatter(loop.budgets[-1:], loop.capability[-1:], 90.0, color=colour, marker="*", zorder=4)
    for (x0, y0), (x1, y1) in pairwise(zip(loop.budgets, loop.capability, strict=True)):
        axes.annotate(
            "",
            xy=(0.42 * x0 + 0.58 * x1, 0.42 * y0 + 0.58 * y1),
            xytext=(0.58 * x0 + 0.42 * x1, 0.58 * y0 + 0.42 * y1),
            arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.0, "mutation_scale": 11},
        )


def _label_ends(axes: Axes, loops: Sequence[_Loop], room: float) -> None:
    """Name each loop beside its end, moved apart where ends meet."""
    ends = sorted(((loop.capability[-1], loop.arm) for loop in loops), key=lambda end: -round(end[0], 1))
    ceiling = float("inf")
    for end, arm in ends:
        place = min(end, ceiling - _LABEL_GAP * room)
        ceiling = place
        axes.annotate(
            f"{LABELS.get(arm, arm)}  {end:.1f}",
            xy=(1.0, end),
            xytext=(1.05, place),
            color=COLOURS.get(arm, "#777777"),
            fontsize=8.5,
            va="center",
            arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.6, "relpos": (0.0, 0.5)},
        )
