"""The bench's file store: one JSON Lines file a cell, one row a stage, written at once or not at all.

DuckDB reads a run as it lies: read_json_auto('DIR/rows/*.jsonl', union_by_name=true).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.runner.cell import Cell
from shared.errors import Code, InputError

ROWS = "rows"
FAILED = "failed"
_ROOT = Path(__file__).resolve().parents[2]
# What a row's figures depend on, beside the data.
_SOURCES = ("shared", "edge_agent", "hub", "bench/environments", "bench/policies", "bench/runner")


class RowStore:
    """A directory of finished cells."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / ROWS).mkdir(parents=True, exist_ok=True)
        (directory / FAILED).mkdir(exist_ok=True)

    def done(self, cell: Cell, code: str) -> bool:
        """Whether a cell was finished by this very code; a torn or foreign file is not."""
        try:
            rows = read_rows(self._path(cell))
        except (FileNotFoundError, InputError):
            return False
        return bool(rows) and all(row.get("code") == code for row in rows)

    def put(self, cell: Cell, rows: Iterable[Mapping[str, Any]]) -> None:
        """A finished cell, all rows or none."""
        _write(self._path(cell), rows)
        self._failure(cell).unlink(missing_ok=True)

    def failed(self, cell: Cell, reason: str) -> None:
        """A cell that ended in an error: kept apart, run again next time."""
        self._path(cell).unlink(missing_ok=True)
        _write(self._failure(cell), [{"cell": cell.id, "error": reason}])

    def rows(self) -> list[dict[str, Any]]:
        """Every row of every finished cell, by file name and stage."""
        found: list[dict[str, Any]] = []
        for path in sorted((self.directory / ROWS).glob("*.jsonl")):
            found += read_rows(path)
        return found

    def failures(self) -> list[dict[str, Any]]:
        """Every cell that failed last time."""
        return [row for path in sorted((self.directory / FAILED).glob("*.jsonl")) for row in read_rows(path)]

    def _path(self, cell: Cell) -> Path:
        return self.directory / ROWS / f"{cell.id}.jsonl"

    def _failure(self, cell: Cell) -> Path:
        return self.directory / FAILED / f"{cell.id}.jsonl"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of one file; InputError(BAD_REQUEST) names a line that is not a JSON object."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise InputError(
                Code.BAD_REQUEST,
                "not a row of the bench",
                file=str(path),
                line=number,
                hint="Delete the file: the cell is run again",
            )
        rows.append(row)
    return rows


def code_fingerprint() -> str:
    """A digest of the sources that decide a row's figures: a row of other code is not reused."""
    digest = sha256()
    for source in _SOURCES:
        for path in sorted((_ROOT / source).rglob("*.py")):
            digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(row, sort_keys=True, allow_nan=False) + "\n" for row in rows)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
