"""What a check of the theory leaves behind: a title, a text for the page, figures, and points to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Check:
    """`name` is its key in theory.json. text: Markdown, made from the figures."""

    name: str
    title: str
    text: str
    figures: Mapping[str, float]
    points: Sequence[tuple[float, float]] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """Figures stand at the top level beside title, text and points."""
        return {
            **self.figures,
            "title": self.title,
            "text": self.text,
            "points": [list(p) for p in self.points],
        }
