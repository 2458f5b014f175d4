"""What the figures share: colours, names, canvases without a display, and the cycles that they average."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bench.results import paper
from bench.results.cycles import Cycle, Run
from bench.results.tables import DEFINITION_1

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One representative of each family, as in the paper's Figure 1, and packed LRU because honesty asks for it.
FAMILIES = ("lru", "mem0", "human_inspired", "curator", "r3mem", "lru_packed", "crystalmem", "product")
# Okabe and Ito: distinguishable with the common colour-vision deficiencies.
COLOURS = {
    "keep_all": "#000000",
    "lru": "#D55E00",
    "mem0": "#CC79A7",
    "human_inspired": "#999999",
    "curator": "#009E73",
    "r3mem": "#F0E442",
    "lru_packed": "#E69F00",
    "crystalmem": "#56B4E9",
    "product": "#0072B2",
    "product_archive": "#004466",
}
GREY = "#777777"


def new(columns: int, rows: int = 1, width: float = 5.2, height: float = 4.2) -> tuple[Figure, list[Axes]]:
    """An empty figure and its panels, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def colour(policy: str) -> str:
    """A policy's colour."""
    return COLOURS.get(policy, GREY)


def seven(cycles: Iterable[Cycle]) -> list[Cycle]:
    """Those of Table II's seven environments."""
    return [cycle for cycle in cycles if cycle.environment in paper.SEVEN]


def environments(run: Run, path: str = DEFINITION_1) -> list[str]:
    """The seven, as far as they ran on a path."""
    return [name for name in paper.SEVEN if name in run.environments(path)]


def seeds(run: Run) -> int:
    """How many seeds ran Definition 1."""
    return len({cycle.seed for cycle in run.cycles if cycle.path == DEFINITION_1})


def legend(axes: Axes, handles: Sequence[tuple[str, str]]) -> None:
    """A key of (colour, text)."""
    from matplotlib.patches import Patch

    axes.legend(handles=[Patch(color=colour, label=text) for colour, text in handles], fontsize=7, ncols=2)
