"""Markdown tables from cells of text."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column to the left, the others to the right."""
    lines = [
        "| " + " | ".join(header) + " |",
        "| " + " | ".join(["---", *["---:"] * (len(header) - 1)]) + " |",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def number(value: float | None, digits: int = 1, signed: bool = False) -> str:
    """A figure, or a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
