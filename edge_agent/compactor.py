"""Finds what is worth writing anew: half-dead and small blocks, sparse text pages, sparse entry pages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edge_agent.bodies import DEAD_SHARE
from edge_agent.plane import Plane
from shared.memory.blocks import MAX_MEMBERS, MAX_TEXT_BYTES
from shared.memory.model import Rung

# A block this far below both limits packs badly; a few of them are let be, so that little is written twice.
_SMALL_SHARE = 0.25
_SMALL_BLOCKS = 4
# Text rows of so many consecutive block numbers share pages.
_GROUP = 32
# From this share of removed entries on, the entry rows are worth writing anew.
_HOLE_SHARE = 0.01
# Entry rows rewritten in one transaction: about 300 KB.
_ENTRY_ROWS = 4096


class Compactor:
    """Reads the columns; the writing is the mover's."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def worn_blocks(self, dead_share: float = DEAD_SHARE, alike: int = _SMALL_BLOCKS) -> list[int]:
        """Entries of blocks with more dead bytes than this, and of small blocks where so many are alike."""
        rows = self._plane.table.rows()
        facts = rows["facts"]
        packed = facts["rung"] != Rung.FULL
        worn = set(self._plane.bodies.worn(dead_share))
        small: dict[tuple[int, int], set[int]] = {}
        blocks, kinds, rungs = facts["block"][packed], facts["kind"][packed], facts["rung"][packed]
        numbers, first = np.unique(blocks, return_index=True)
        for number, kind, rung in zip(
            numbers.tolist(), kinds[first].tolist(), rungs[first].tolist(), strict=True
        ):
            block = self._plane.bodies.blocks.get(number)
            if block is not None and (
                block.live_members < _SMALL_SHARE * MAX_MEMBERS
                and block.live_text_bytes < _SMALL_SHARE * MAX_TEXT_BYTES
            ):
                small.setdefault((kind, rung), set()).add(number)
        for group in small.values():
            if len(group) >= alike:
                worn |= group
        chosen = rows["number"][packed][np.isin(blocks, list(worn))]
        return self._plane.table.in_storage_order(chosen.tolist())

    def sparse_texts(self) -> list[int]:
        """Entries at FULL whose neighbours in the file are gone: their pages are half empty."""
        rows = self._plane.table.rows()
        facts = rows["facts"]
        held = np.unique(facts["block"])
        groups, counts = np.unique(held // _GROUP, return_counts=True)
        last = self._plane.journal.meta.next_block // _GROUP
        sparse = groups[(counts < (1 - DEAD_SHARE) * _GROUP) & (groups < last)]
        chosen = rows["number"][(facts["rung"] == Rung.FULL) & np.isin(facts["block"] // _GROUP, sparse)]
        return self._plane.table.in_storage_order(chosen.tolist())

    def entries_are_sparse(self) -> bool:
        """True where enough entry rows went for the others' pages to be worth writing anew."""
        return self._plane.journal.meta.entry_holes > _HOLE_SHARE * len(self._plane.table)

    def vectors_are_sparse(self) -> bool:
        """True where enough vectors went for the others' pages to be worth writing anew."""
        holes = self._plane.journal.meta.vector_holes
        return holes > _HOLE_SHARE * max(len(self._plane.vectors), 1)

    def repack_vectors(self) -> Iterator[None]:
        """Write the vectors anew in their order, a transaction a step."""
        numbers = sorted(self._plane.vectors.numbers().tolist())
        for start in range(0, len(numbers), _ENTRY_ROWS):
            last = start + _ENTRY_ROWS >= len(numbers)
            bounds = numbers[start], numbers[min(start + _ENTRY_ROWS, len(numbers)) - 1]
            with self._plane.journal.write() as change:
                self._plane.vectors.rewrite(change, *bounds)
                if last:
                    change.change(vector_holes=0)
            yield

    def repack_entries(self) -> Iterator[None]:
        """Write the entry rows anew in their order, a transaction a step."""
        numbers = self._plane.table.numbers().tolist()
        for start in range(0, len(numbers), _ENTRY_ROWS):
            bounds = numbers[start], numbers[min(start + _ENTRY_ROWS, len(numbers)) - 1]
            with self._plane.journal.write() as change:
                rows = change.db.query(
                    "SELECT number, id, digest, version, facts FROM entry WHERE number BETWEEN ? AND ?"
                    " ORDER BY number",
                    bounds,
                )
                change.db.execute("DELETE FROM entry WHERE number BETWEEN ? AND ?", bounds)
                change.db.executemany(
                    "INSERT INTO entry (number, id, digest, version, facts) VALUES (?, ?, ?, ?, ?)", rows
                )
                if start + _ENTRY_ROWS >= len(numbers):
                    change.change(entry_holes=0)
            yield
