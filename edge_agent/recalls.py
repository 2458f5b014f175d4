"""Open recall ids: what an outcome may still be attributed to, within 1 % of the budget (DECISIONS.md 32)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from edge_agent.entries import OpenRecall
from edge_agent.transaction import Transaction
from shared.host.db import Database

# Number, id, time and the cell around them; a hit is 8 bytes.
ROW_BYTES = 40
BUDGET_SHARE = 0.01
# A small store could keep no id at all, and would never learn: a few are allowed there, up to a larger share.
FEW_BYTES = 512
FEW_SHARE = 0.02
_HIT = np.dtype([("number", "<u4"), ("weight", "<f4")])


class OpenRecalls:
    """Oldest first; the oldest become void where the cap binds."""

    def __init__(self, database: Database) -> None:
        self._held: OrderedDict[bytes, tuple[int, OpenRecall]] = OrderedDict()
        self._bytes = 0
        for rank, recall_id, created_wall_ns, hits in database.query(
            "SELECT rank, id, created_wall_ns, hits FROM recall ORDER BY rank"
        ):
            pairs = tuple(np.frombuffer(hits, _HIT).tolist())
            self._opened(rank, OpenRecall(recall_id, created_wall_ns, pairs))

    def __len__(self) -> int:
        return len(self._held)

    def charged_bytes(self) -> int:
        """What the open ids cost the budget."""
        return self._bytes

    def cap(self, budget_bytes: float) -> float:
        """The most they may cost under a budget."""
        return max(BUDGET_SHARE * budget_bytes, min(FEW_BYTES, FEW_SHARE * budget_bytes))

    def get(self, recall_id: bytes) -> OpenRecall | None:
        """An id that may still be graded."""
        held = self._held.get(recall_id)
        return None if held is None else held[1]

    def open(self, change: Transaction, recall: OpenRecall, budget_bytes: int) -> None:
        """Keep a recall; a cap too small for even one keeps none."""
        self._make_room(change, self.cap(budget_bytes) - _charge(recall))
        if _charge(recall) > self.cap(budget_bytes):
            return
        rank = change.db.insert(
            "INSERT INTO recall (id, created_wall_ns, hits) VALUES (?, ?, ?)",
            (recall.recall_id, recall.created_wall_ns, np.array(list(recall.hits), _HIT).tobytes()),
        )
        change.after(lambda: self._opened(rank, recall))

    def close(self, change: Transaction, recall_id: bytes) -> None:
        """Graded: the id is void from now on."""
        rank, _ = self._held[recall_id]
        change.db.execute("DELETE FROM recall WHERE rank = ?", (rank,))
        change.after(lambda: self._closed([recall_id]))

    def fit(self, change: Transaction, budget_bytes: int) -> None:
        """A smaller budget: the oldest become void."""
        self._make_room(change, self.cap(budget_bytes))

    def void(self, change: Transaction) -> None:
        """None may be graded any more."""
        self._make_room(change, -1.0)

    def _make_room(self, change: Transaction, room_bytes: float) -> None:
        void, size = [], self._bytes
        for recall_id, (_, recall) in self._held.items():
            if size <= room_bytes:
                break
            void.append(recall_id)
            size -= _charge(recall)
        if void:
            change.db.executemany(
                "DELETE FROM recall WHERE rank = ?", [(self._held[recall_id][0],) for recall_id in void]
            )
            change.after(lambda: self._closed(void))

    def _opened(self, rank: int, recall: OpenRecall) -> None:
        self._held[recall.recall_id] = rank, recall
        self._bytes += _charge(recall)

    def _closed(self, recall_ids: Sequence[bytes]) -> None:
        for recall_id in recall_ids:
            _, recall = self._held.pop(recall_id)
            self._bytes -= _charge(recall)


def _charge(recall: OpenRecall) -> int:
    return ROW_BYTES + _HIT.itemsize * len(recall.hits)
