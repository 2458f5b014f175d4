"""The store's columns in memory: one numpy record an entry, the same bytes as its rows on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntFlag
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shared.memory.model import Rung

Structured = np.ndarray[Any, np.dtype[np.void]]
Index = NDArray[np.int64]
_ScalarT = TypeVar("_ScalarT", bound=np.generic)

# Fixed width, little endian, unaligned: the `facts` blob of an entry row.
FACTS = np.dtype(
    [
        ("created_wall_ns", "<i8"),
        ("text_bytes", "<u4"),
        ("block", "<u4"),
        ("created_event", "<u4"),
        ("created_stage", "<u4"),
        ("levelling", "<u2"),
        ("slot", "u1"),
        ("rung", "u1"),
        ("kind", "u1"),
        ("memory_class", "u1"),
        ("flags", "u1"),
    ]
)
# The `heat` blob of an entry that was ever recalled; stage counts are of `recall_stage` and the one before.
HEAT = np.dtype(
    [
        ("influence", "<f4"),
        ("influence_stage", "<u4"),
        ("recalls", "<u4"),
        ("recall_stage", "<u4"),
        ("last_recall_event", "<u4"),
        ("grades", "<u2"),
        ("recalls_this_stage", "<u2"),
        ("recalls_last_stage", "<u2"),
    ]
)
# What an eviction leaves; with its row it is charged as 24 bytes.
STUB = np.dtype(
    [("digest_prefix", "V8"), ("value", "<f4"), ("version", "<u2"), ("kind", "u1"), ("memory_class", "u1")]
)
ROW = np.dtype(
    [
        ("number", "<u4"),
        ("version", "<u4"),
        ("id", "V16"),
        ("digest", "V16"),
        ("facts", FACTS),
        ("heat", HEAT),
        ("overlay_rung", "u1"),
        ("overlay_bytes", "<u4"),
        ("graph_bytes", "<u4"),
        ("vector_bytes", "<u2"),
        ("body_bytes", "<f4"),
    ]
)
NO_OVERLAY = 255
# `levelling` of an entry that was never levelled: the hub may hold its original, but no layer.
NO_LEVELS = 0
_COMPACT_BELOW = 0.5


class Flag(IntFlag):
    """Bits of `flags`."""

    DAMAGED = 1
    CORE = 2
    ARCHIVED = 4
    """The hub acknowledged every layer of this version: an exact source, and the levels are frozen."""


class EntryTable:
    """Rows by number; a removed row leaves a hole until the next compaction."""

    def __init__(self) -> None:
        self._rows: Structured = np.zeros(64, ROW)
        self._count = 0
        self._row_of: dict[int, int] = {}
        self._number_of: dict[bytes, int] = {}
        self._sorted = True
        self._highest = 0
        self.changes = 0
        """Counts every change, so that sums over the rows can be kept."""

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, number: int) -> bool:
        return number in self._row_of

    def number_of(self, public_id: bytes) -> int | None:
        """The local number of a public id."""
        return self._number_of.get(public_id)

    def get(self, number: int) -> np.void | None:
        """A view of one row, good until the next change of the table; None where there is none."""
        row = self._row_of.get(number)
        return None if row is None else self._rows[row]

    def put(self, row: np.void) -> None:
        """Add a row (any number) or replace the one with this number."""
        self.changes += 1
        number = int(row["number"])
        place = self._row_of.get(number)
        if place is None:
            place = self._append(number)
        self._rows[place] = row
        self._number_of[row["id"].tobytes()] = number

    def load(self, rows: Structured) -> None:
        """Fill the table from rows in ascending number order."""
        self.changes += 1
        self._rows = rows.copy() if len(rows) else np.zeros(64, ROW)
        self._count = len(rows)
        self._row_of = {number: place for place, number in enumerate(rows["number"].tolist())}
        self._sorted = True
        self._highest = int(rows["number"][-1]) if len(rows) else 0
        ids = rows["id"].tobytes()
        self._number_of = {
            ids[16 * place : 16 * place + 16]: number for place, number in enumerate(rows["number"].tolist())
        }

    def remove(self, numbers: Iterable[int]) -> None:
        """Drop rows; unknown numbers are fine."""
        self.changes += 1
        for number in numbers:
            place = self._row_of.pop(number, None)
            if place is None:
                continue
            del self._number_of[self._rows[place]["id"].tobytes()]
            self._rows[place] = np.zeros((), ROW)
        if self._count > 1024 and len(self._row_of) < _COMPACT_BELOW * self._count:
            self.load(self.rows())

    def rows(self) -> Structured:
        """A copy of the live rows, ascending by number."""
        held = self._rows[: self._count]
        live: Structured = held[held["number"] != 0]
        return live if self._sorted else live[np.argsort(live["number"])]

    def raw(self) -> Structured:
        """Without a copy: every row and hole, a hole all zeros. For sums that see no holes."""
        return self._rows[: self._count]

    def at(self, numbers: Iterable[int]) -> Index:
        """Positions of live numbers in the raw rows, for `fields` and `take`."""
        return np.fromiter((self._row_of[number] for number in numbers), np.int64)

    def put_many(self, rows: Structured) -> None:
        """Replace rows that are there."""
        self.changes += 1
        self._rows[self.at(rows["number"].tolist())] = rows

    def take(self, numbers: Iterable[int]) -> Structured:
        """A copy of the rows of these numbers, in this order."""
        return self._rows[self.at(numbers)]

    def numbers(self) -> Index:
        """Live numbers, ascending."""
        return self.rows()["number"].astype(np.int64)

    def in_storage_order(self, numbers: Iterable[int]) -> list[int]:
        """These numbers by (block, slot): the order in which a sweep reads and writes."""
        wanted = list(numbers)
        facts = self.take(wanted)["facts"]
        order = np.lexsort((facts["slot"], facts["block"]))
        return [wanted[place] for place in order.tolist()]

    def __iter__(self) -> Iterator[int]:
        return iter(self._row_of)

    def _append(self, number: int) -> int:
        if self._count == len(self._rows):
            grown = np.zeros(2 * len(self._rows), ROW)
            grown[: self._count] = self._rows
            self._rows = grown
        # A restored entry takes its old number back.
        self._sorted = self._sorted and number > self._highest
        self._highest = max(self._highest, number)
        place = self._count
        self._count += 1
        self._row_of[number] = place
        return place


def packed_rows(rows: Structured, field: str) -> list[tuple[bytes, int]]:
    """(bytes of a nested field, number) of each row: the parameters of an UPDATE."""
    column = np.ascontiguousarray(rows[field])
    data, width = column.tobytes(), column.dtype.itemsize
    numbers = rows["number"].tolist()
    return [(data[place * width : (place + 1) * width], number) for place, number in enumerate(numbers)]


def blank_row(number: int) -> np.void:
    """A zeroed row without overlay."""
    row = np.zeros(1, ROW)
    row["number"] = number
    row["version"] = 1
    row["overlay_rung"] = NO_OVERLAY
    return row[0]  # type: ignore[no-any-return]


def recalls_last_stage(heat: Structured, stage: int) -> NDArray[np.int32]:
    """Recalls in the stage before `stage`, whenever the counts were last touched."""
    touched = heat["recall_stage"].astype(np.int64)
    return np.where(
        touched == stage,
        heat["recalls_last_stage"],
        np.where(touched == stage - 1, heat["recalls_this_stage"], 0),
    ).astype(np.int32)


def shown_rungs(rows: Structured) -> NDArray[np.uint8]:
    """The overlay's rung where there is one, else the base's."""
    overlay = rows["overlay_rung"]
    return np.where(overlay == NO_OVERLAY, rows["facts"]["rung"], overlay).astype(np.uint8)


def lossy(rungs: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """True where a base is a subset of its original's spans."""
    return (rungs >= Rung.CONDENSED) & (rungs <= Rung.TRACE)
