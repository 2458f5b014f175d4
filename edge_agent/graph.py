"""The dependency graph: a few co-retrieval edges an entry, and the references that its writer gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from edge_agent.transaction import Transaction
from shared.host.db import Database
from shared.memory.value import Edges

MAX_EDGES = 8
# What an entry's edges may cost of its text (DECISIONS.md 33).
_EDGES_SHARE = 0.05
# A row around the edges or references blob: number, header and cell.
ROW_BYTES = 8
_EDGE = np.dtype([("neighbour", "<u4"), ("count", "<u2")])
_TARGET = np.dtype("<u4")
_MOST = 2**16 - 1


class Graph:
    """In memory as dicts; on disk one blob an entry."""

    def __init__(self, database: Database) -> None:
        self._edges: dict[int, dict[int, int]] = {
            number: dict(np.frombuffer(blob, _EDGE).tolist())
            for number, blob in database.query("SELECT number, edges FROM edge")
        }
        self._references: dict[int, tuple[int, ...]] = {
            number: tuple(np.frombuffer(blob, _TARGET).tolist())
            for number, blob in database.query("SELECT number, targets FROM reference")
        }

    def owners(self) -> frozenset[int]:
        """Entries that hold edges or references."""
        return frozenset(self._edges) | frozenset(self._references)

    def references(self, number: int) -> tuple[int, ...]:
        """What this entry cites."""
        return self._references.get(number, ())

    def neighbours(self, number: int) -> Mapping[int, int]:
        """Co-retrieval counts of this entry."""
        return self._edges.get(number, {})

    def charged_bytes(self, number: int) -> int:
        """What this entry's edges and references cost the budget."""
        edges, targets = len(self._edges.get(number, ())), len(self._references.get(number, ()))
        return (edges and ROW_BYTES + _EDGE.itemsize * edges) + reference_bytes(targets)

    def refer(self, change: Transaction, number: int, targets: Sequence[int]) -> None:
        """Keep an entry's references."""
        kept = tuple(dict.fromkeys(targets))
        if not kept:
            return
        change.db.execute(
            "INSERT OR REPLACE INTO reference (number, targets) VALUES (?, ?)",
            (number, np.array(kept, _TARGET).tobytes()),
        )
        change.after(partial(self._references.__setitem__, number, kept))

    def retrieved_together(self, change: Transaction, text_bytes: Mapping[int, int]) -> None:
        """Count one co-retrieval for every pair of these entries; the weakest goes where there are too many.

        text_bytes: the original's, by entry: a short text keeps few edges, or none.
        """
        for number, size in text_bytes.items():
            most = most_edges(size)
            if not most:
                continue
            edges = dict(self._edges.get(number, {}))
            for other in text_bytes:
                if other != number:
                    edges[other] = min(edges.pop(other, 0) + 1, _MOST)
            # The newest were put last; among equals they stay.
            newest_first = list(reversed(edges))
            strongest = sorted(newest_first, key=edges.__getitem__, reverse=True)[:most]
            if strongest:
                self._keep(change, number, {other: edges[other] for other in reversed(strongest)})

    def drop(self, change: Transaction, numbers: Sequence[int]) -> None:
        """Entries went: theirs go too. Edges into them fade by being outnumbered."""
        rows = [(number,) for number in numbers]
        change.db.executemany("DELETE FROM edge WHERE number = ?", rows)
        change.db.executemany("DELETE FROM reference WHERE number = ?", rows)
        change.after(partial(self._dropped, numbers))

    def edges(self, numbers: NDArray[np.int64]) -> Edges:
        """Edges and references between these entries (ascending numbers), as rows of Eq. 9."""
        first, second, count = [], [], []
        for number, edges in self._edges.items():
            for other, together in edges.items():
                # Both ends usually hold the edge: half a count each, so that x is the count.
                first.append(number)
                second.append(other)
                count.append(together / 2 if number in self._edges.get(other, ()) else float(together))
        for number, targets in self._references.items():
            first.extend([number] * len(targets))
            second.extend(targets)
            count.extend([1.0] * len(targets))
        a, b = _rows_of(numbers, first), _rows_of(numbers, second)
        live = (a >= 0) & (b >= 0)
        return Edges.symmetric(len(numbers), a[live], b[live], np.array(count, np.float64)[live])

    def cited_by(self, numbers: NDArray[np.int64], citing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of these entries (ascending) any of the `citing` ones refers to."""
        cited = np.zeros(len(numbers), np.bool_)
        live = set(numbers[citing].tolist())
        targets = [target for number, kept in self._references.items() if number in live for target in kept]
        rows = _rows_of(numbers, targets)
        cited[rows[rows >= 0]] = True
        return cited

    def _keep(self, change: Transaction, number: int, edges: dict[int, int]) -> None:
        change.db.execute(
            "INSERT OR REPLACE INTO edge (number, edges) VALUES (?, ?)",
            (number, np.array(list(edges.items()), _EDGE).tobytes()),
        )
        change.after(partial(self._edges.__setitem__, number, edges))

    def _dropped(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._edges.pop(number, None)
            self._references.pop(number, None)


def most_edges(text_bytes: int) -> int:
    """How many co-retrieval edges an entry of this size keeps."""
    room = _EDGES_SHARE * text_bytes - ROW_BYTES
    return min(MAX_EDGES, max(0, int(room // _EDGE.itemsize)))


def reference_bytes(targets: int) -> int:
    """What so many references of one entry cost the budget."""
    return targets and ROW_BYTES + _TARGET.itemsize * targets


def _rows_of(numbers: NDArray[np.int64], wanted: Sequence[int]) -> NDArray[np.int64]:
    """Row of each wanted number among ascending `numbers`; -1 where it is not."""
    sought = np.array(wanted, np.int64)
    if not len(numbers) or not len(sought):
        return np.full(len(sought), -1, np.int64)
    rows = np.minimum(np.searchsorted(numbers, sought), len(numbers) - 1)
    return np.where(numbers[rows] == sought, rows, -1)
