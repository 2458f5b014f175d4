"""Rows of a run, read through DuckDB, and the loop metrics of each cycle (paper, Definition 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.runner.rows import ROWS
from shared.errors import Code, InputError
from shared.memory.cycle import LoopPoint, deficit, hysteresis

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cycle:
    """One cell: its rows in stage order."""

    environment: str
    policy: str
    seed: int
    path: str
    rows: tuple[Row, ...]

    @property
    def measured(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row["C"] is not None)

    @property
    def restored(self) -> float:
        """C of the last measured stage."""
        return float(self.measured[-1]["C"])

    @property
    def first(self) -> float:
        return float(self.measured[0]["C"])

    @property
    def trough(self) -> float:
        """C where the budget is smallest (the first such stage)."""
        return float(min(self.measured, key=lambda row: (row["b"], row["stage"]))["C"])

    @property
    def deficit(self) -> float:
        """D, points."""
        return deficit(self.points)

    @property
    def hysteresis(self) -> float | None:
        """H of Eq. 3; None where nothing was known before the squeeze."""
        return hysteresis(self.points) if self.first > 0 else None

    @property
    def retention(self) -> float | None:
        """C at the trough as a share of C before the squeeze."""
        return self.trough / self.first if self.first > 0 else None

    @property
    def points(self) -> list[LoopPoint]:
        return [LoopPoint(row["b"], row["C"], row["n"], (0.0, 100.0)) for row in self.measured]

    def total(self, name: str) -> float:
        """Sum of a column over the stages."""
        return float(sum(row.get(name) or 0 for row in self.rows))


class Run:
    """Every finished cell of a run's directory."""

    def __init__(self, cycles: Iterable[Cycle]) -> None:
        self.cycles = tuple(cycles)

    @classmethod
    def read(cls, directory: Path) -> Run:
        """InputError(BAD_INPUT_FILE) where there are no rows."""
        files = directory / ROWS / "*.jsonl"
        if not any((directory / ROWS).glob("*.jsonl")):
            raise InputError(
                Code.BAD_INPUT_FILE,
                "no rows of the bench there",
                directory=str(directory),
                hint="Run `crystalmem bench run --out DIR` first",
            )
        connection = duckdb.connect()
        try:
            found = connection.execute(
                "SELECT * FROM read_json_auto(?, union_by_name=true, format='newline_delimited')"
                " ORDER BY path, environment, policy, seed, stage",
                [str(files)],
            )
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
        finally:
            connection.close()
        return cls(_cycles(rows))

    def where(self, test: Callable[[Cycle], bool]) -> tuple[Cycle, ...]:
        return tuple(cycle for cycle in self.cycles if test(cycle))

    def of(self, path: str, policy: str, environment: str | None = None) -> tuple[Cycle, ...]:
        """Cells of a policy on a path, by environment and seed."""
        return self.where(
            lambda cycle: (
                cycle.path == path
                and cycle.policy == policy
                and (environment is None or cycle.environment == environment)
            )
        )

    def environments(self, path: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cycle.environment for cycle in self.cycles if cycle.path == path))

    def policies(self, path: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cycle.policy for cycle in self.cycles if cycle.path == path))

    def one(self, name: str) -> str:
        """What a column says where all rows agree; "mixed: ..." where they do not."""
        said = dict.fromkeys(str(row.get(name)) for cycle in self.cycles for row in cycle.rows)
        return next(iter(said)) if len(said) == 1 else "mixed: " + ", ".join(sorted(said))


def _cycles(rows: Sequence[Row]) -> Iterable[Cycle]:
    groups: dict[tuple[str, str, int, str], list[Row]] = {}
    for row in rows:
        key = (row["environment"], row["policy"], row["seed"], row["path"])
        groups.setdefault(key, []).append(row)
    for (environment, policy, seed, path), held in groups.items():
        yield Cycle(environment, policy, seed, path, tuple(held))
