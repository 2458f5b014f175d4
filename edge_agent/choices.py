"""Clauses that a model chose: a few bytes an entry, written once, part of its levels from then on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from edge_agent.bodies import ROW_BYTES
from edge_agent.transaction import Transaction
from shared.host.db import Database
from shared.memory import varint


class Choices:
    """Clause numbers by entry number, evicted entries with a stub included: their layers come back."""

    def __init__(self, database: Database) -> None:
        rows = database.query("SELECT number, clauses FROM choice ORDER BY number")
        self._clauses = {number: _decoded(clauses) for number, clauses in rows}
        self._bytes = sum(ROW_BYTES + len(clauses) for _, clauses in rows)

    def __contains__(self, number: int) -> bool:
        return number in self._clauses

    def __len__(self) -> int:
        return len(self._clauses)

    def of(self, number: int) -> tuple[int, ...]:
        """The chosen clauses, ascending; empty where nobody chose."""
        return self._clauses.get(number, ())

    def among(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these entries have a choice."""
        return np.isin(numbers, np.fromiter(self._clauses, np.int64, len(self._clauses)))

    def charged_bytes(self) -> int:
        """What all choices cost the budget."""
        return self._bytes

    def put(self, change: Transaction, number: int, clauses: Iterable[int]) -> None:
        """Keep a choice; the caller has checked that the levels are not made yet."""
        chosen = tuple(sorted(set(clauses)))
        encoded = _encoded(chosen)
        change.db.execute("INSERT INTO choice (number, clauses) VALUES (?, ?)", (number, encoded))
        change.after(partial(self._added, number, chosen, ROW_BYTES + len(encoded)))

    def drop(self, change: Transaction, numbers: Iterable[int]) -> None:
        """Entries went for good."""
        gone = [number for number in numbers if number in self._clauses]
        change.db.executemany("DELETE FROM choice WHERE number = ?", [(number,) for number in gone])
        change.after(partial(self._dropped, gone))

    def _added(self, number: int, chosen: tuple[int, ...], size_bytes: int) -> None:
        self._clauses[number] = chosen
        self._bytes += size_bytes

    def _dropped(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._bytes -= ROW_BYTES + len(_encoded(self._clauses.pop(number)))


def choice_bytes(clauses: Iterable[int]) -> int:
    """What a choice would cost the budget."""
    return ROW_BYTES + len(_encoded(tuple(sorted(set(clauses)))))


def _encoded(clauses: tuple[int, ...]) -> bytes:
    out, before = bytearray(), 0
    for clause in clauses:
        varint.put(out, clause - before)
        before = clause
    return bytes(out)


def _decoded(encoded: bytes) -> tuple[int, ...]:
    reader, clauses, before = varint.Reader(encoded), [], 0
    while reader.left:
        before += reader.unsigned()
        clauses.append(before)
    return tuple(clauses)
