"""The byte account of a store (spec.md 3): what is charged, what is on disk, what it cannot do without."""

from __future__ import annotations

import numpy as np

from edge_agent import columns
from edge_agent.bodies import ROW_BYTES
from edge_agent.entries import Usage
from edge_agent.estimates import Estimates
from edge_agent.outbox import ROW_BYTES as OUTBOX_ROW_BYTES
from edge_agent.plane import ENTRY_ROW_BYTES, STUB_BYTES, Plane, size_bytes
from edge_agent.table import NO_OVERLAY
from shared.memory.crystallize import SLACK_ALONE, SLACK_LINKED, aim_bytes
from shared.memory.model import Rung


class Account:
    """Sums over the plane; the sum over entries is kept until the table changes."""

    def __init__(self, plane: Plane, estimates: Estimates) -> None:
        self._plane = plane
        self._estimates = estimates
        self._entries_bytes = (-1, 0.0)

    def entries_bytes(self) -> float:
        """Sum of mu over the live entries."""
        changes, total = self._entries_bytes
        if changes != self._plane.table.changes:
            total = float(size_bytes(self._plane.table.raw()).sum())
            self._entries_bytes = self._plane.table.changes, total
        return total

    def shared_bytes(self) -> float:
        """What belongs to no single entry: dictionaries, outbox, batch in flight, recall ids, dead bytes."""
        return self._kept_bytes() + self._plane.recalls.charged_bytes() + self._plane.bodies.dead_bytes()

    def floor_bytes(self, budget_bytes: int | None = None) -> float:
        """Shared bytes and stubs, less what a sweep frees: dead bytes, and recall ids over their share."""
        plane = self._plane
        budget = plane.journal.meta.budget_bytes if budget_bytes is None else budget_bytes
        recalls = min(plane.recalls.charged_bytes(), plane.recalls.cap(budget))
        return self._kept_bytes() + recalls + STUB_BYTES * len(plane.stubs)

    def logical_bytes(self) -> float:
        """Sum of mu, stubs and shared bytes."""
        return self.entries_bytes() + STUB_BYTES * len(self._plane.stubs) + self.shared_bytes()

    def disk_bytes(self) -> int:
        """Sum of the file sizes under memory/."""
        return self._plane.disk_meter(self._plane.db.path.parent)

    def wal_bytes(self) -> int:
        """Size of the write-ahead log, which every shrink empties."""
        path = self._plane.db.path
        try:
            return path.with_name(path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def written_bytes(self, text_bytes: int) -> int:
        """What a written text is charged: its row, and its delta where a hub is told."""
        told = 0 if self._plane.archive is None else OUTBOX_ROW_BYTES
        return text_bytes + ROW_BYTES + ENTRY_ROW_BYTES + told

    def fits(self, text_bytes: int) -> bool:
        """Whether a text may be written without going over either budget."""
        return self._used_bytes() + self.written_bytes(text_bytes) <= self._plane.journal.meta.budget_bytes

    def holds(self, reserve_bytes: float = 0.0) -> bool:
        """Whether both budgets hold, the log aside, with so many bytes still to come."""
        return self._used_bytes() + max(reserve_bytes, 0.0) <= self._plane.journal.meta.budget_bytes

    def aim_bytes(self, budget_bytes: int | None = None) -> float:
        """What a sweep aims at under a budget (None = the one in force)."""
        budget = self._plane.journal.meta.budget_bytes if budget_bytes is None else budget_bytes
        return aim_bytes(budget, SLACK_ALONE if self._plane.archive is None else SLACK_LINKED)

    def room_bytes(self) -> float:
        """What either budget still has room for, the log aside; negative when over."""
        return self._plane.journal.meta.budget_bytes - self._used_bytes()

    def _used_bytes(self) -> float:
        disk = self.disk_bytes() - self.wal_bytes() - self._plane.journal.meta.empty_bytes
        return max(self.logical_bytes(), disk)

    def usage(self) -> Usage:
        """The whole account, as it is now."""
        rows = self._plane.table.rows()
        rungs, counts = np.unique(rows["facts"]["rung"], return_counts=True)
        meta = self._plane.journal.meta
        self._estimates.refresh(lossy=False)
        return Usage(
            logical_bytes=self.logical_bytes(),
            shared_bytes=self.shared_bytes(),
            disk_bytes=self.disk_bytes(),
            empty_bytes=meta.empty_bytes,
            floor_bytes=self.floor_bytes(),
            budget_bytes=meta.budget_bytes,
            provision_bytes=meta.provision_bytes,
            packed_bytes=columns.packed_bytes(self._plane, self._estimates),
            entries=len(rows),
            stubs=len(self._plane.stubs),
            rungs={Rung(rung): count for rung, count in zip(rungs.tolist(), counts.tolist(), strict=True)},
            overlays=int(np.count_nonzero(rows["overlay_rung"] != NO_OVERLAY)),
        )

    def _kept_bytes(self) -> int:
        plane = self._plane
        return (
            plane.dictionaries.charged_bytes()
            + plane.outbox.charged_bytes()
            + plane.choices.charged_bytes()
            + len(plane.journal.meta.outcomes)
            + len(plane.journal.meta.embedder)
        )
