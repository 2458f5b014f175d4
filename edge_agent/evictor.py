"""Entries that go: evicted with or without a stub, or forgotten for good."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from edge_agent.entries import EvictedEntry, EvictionReason
from edge_agent.mover import Mover
from edge_agent.outbox import Op
from edge_agent.plane import Plane
from edge_agent.table import STUB, Flag, Structured
from edge_agent.transaction import Transaction
from shared.memory.model import Kind, MemoryClass
from shared.scope import tombstone_hash


class Evictor:
    """Takes entries out of every table in one transaction."""

    def __init__(self, plane: Plane, mover: Mover) -> None:
        self._plane = plane
        self._mover = mover
        self.witness: Callable[[Sequence[EvictedEntry]], None] = _nobody
        """Told of evictions before they are committed: no crash may take an entry and its event."""

    def evict(
        self, numbers: Sequence[int], reason: EvictionReason, values: Mapping[int, float]
    ) -> tuple[EvictedEntry, ...]:
        """Entries go; a stub stays where the hub has every layer of one."""
        rows = self._plane.table.take(numbers)
        stubs = {
            int(row["number"]): _stub(row, values.get(int(row["number"]), 0.0))
            for row in rows
            if int(row["facts"]["flags"]) & Flag.ARCHIVED and reason is not EvictionReason.FORGOTTEN
        }
        gone = tuple(
            EvictedEntry(
                number,
                row["id"].tobytes(),
                Kind(int(row["facts"]["kind"])),
                MemoryClass(int(row["facts"]["memory_class"])),
                values.get(number, 0.0),
                reason,
                number in stubs,
            )
            for number, row in zip(rows["number"].tolist(), rows, strict=True)
        )
        with self._plane.journal.write() as change:
            change.db.executemany("INSERT OR REPLACE INTO stub (number, stub) VALUES (?, ?)", stubs.items())
            change.after(partial(self._plane.stubs.update, stubs))
            self._remove(change, rows, forgotten=reason is EvictionReason.FORGOTTEN)
            # With a stub the layers may come back, and with them the levels that the choice made.
            self._plane.choices.drop(change, [number for number in numbers if number not in stubs])
            if reason is not EvictionReason.FORGOTTEN:
                self.witness(gone)
        return gone

    def forget(self, number: int) -> EvictedEntry:
        """One entry goes for good: its block is rewritten first, so that no byte of it stays."""
        row = self._plane.row(number).copy()
        block = int(row["facts"]["block"])
        rows = self._plane.table.rows()
        others = rows["number"][(rows["facts"]["block"] == block) & (rows["number"] != number)].tolist()
        if others:
            self._mover.rewrite(others)
        return self.evict([number], EvictionReason.FORGOTTEN, {})[0]

    def _remove(self, change: Transaction, rows: Structured, *, forgotten: bool) -> None:
        numbers = rows["number"].tolist()
        plane = self._plane
        self._mover.uncover(change, rows)
        self._mover.leave(change, rows)
        plane.graph.drop(change, numbers)
        plane.vectors.drop(change, numbers)
        change.count("entry_holes", len(numbers))
        for table in ("entry", "heat"):
            change.db.executemany(f"DELETE FROM {table} WHERE number = ?", [(number,) for number in numbers])
        for row in rows:
            number, version = int(row["number"]), int(row["version"])
            unknown = plane.outbox.waits(number, Op.CREATED)
            plane.outbox.withdraw(
                change, number, (Op.CREATED, Op.RESIDUE, Op.LAYERS, *([Op.STATE] * unknown))
            )
            if forgotten:
                self._bury(change, row)
            if not unknown:
                plane.tell(change, number, Op.FORGOTTEN if forgotten else Op.STATE, version)
        change.after(partial(plane.table.remove, numbers))

    def _bury(self, change: Transaction, row: np.void) -> None:
        change.db.execute(
            "INSERT OR REPLACE INTO tombstone (number, hash) VALUES (?, ?)",
            (int(row["number"]), tombstone_hash(self._plane.journal.meta.tenant, row["id"].tobytes())),
        )


def _nobody(_: Sequence[EvictedEntry]) -> None:
    """Nobody keeps the books."""


def _stub(row: np.void, value: float) -> bytes:
    facts = row["facts"]
    stub = np.zeros(1, STUB)
    stub["digest_prefix"] = np.void(row["digest"].tobytes()[:8])
    stub["value"] = value
    stub["version"] = min(int(row["version"]), 2**16 - 1)
    stub["kind"] = facts["kind"]
    stub["memory_class"] = facts["memory_class"]
    return stub.tobytes()
