"""The paper's figures, from our rows, as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.results.cycles import Run
from bench.results.figures_cycles import figure_1, figure_2, figure_4
from bench.results.figures_mechanism import figure_6
from bench.results.figures_sweeps import figure_5, figure_7

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIGURES: dict[str, Callable[[Run, Mapping[str, Any]], Figure | None]] = {
    "figure-1": figure_1,
    "figure-2": figure_2,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
}


def draw_all(run: Run, directory: Path, theory: Mapping[str, Any]) -> list[Path]:
    """Every figure that the rows allow; paths of what was written."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, draw in _FIGURES.items():
        figure = draw(run, theory)
        if figure is not None:
            path = directory / f"{name}.png"
            figure.savefig(path, dpi=110, metadata={"Software": None})
            drawn.append(path)
    return drawn
