"""What recalls and outcomes leave behind: heat, co-retrieval, open ids and the window of outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from edge_agent.entries import OpenRecall
from edge_agent.outbox import Op
from edge_agent.plane import Plane
from edge_agent.table import Structured, packed_rows
from edge_agent.transaction import Transaction
from shared.errors import Code, InputError
from shared.memory.value import WINDOW, decay

_MOST_U16 = 2**16 - 1
RECALL_ID_BYTES = 16


class Telemetry:
    """Persistence only: the value maths is the monitor's."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def recalled(self, hits: Sequence[tuple[int, float]]) -> bytes:
        """Count a recall on its hits (number, weight); the id under which an outcome may be attributed."""
        plane = self._plane
        live = [(number, weight) for number, weight in hits if number in plane.table]
        recall = OpenRecall(plane.rng.bytes(RECALL_ID_BYTES), plane.clock.wall_ns(), tuple(live))
        with plane.journal.write() as change:
            event = change.count("event") + 1
            rows = plane.table.take([number for number, _ in live])
            _heat_up(rows, change.meta.stage, event)
            self._save(change, rows)
            sizes = rows["facts"]["text_bytes"].tolist()
            plane.graph.retrieved_together(
                change, {number: size for (number, _), size in zip(live, sizes, strict=True)}
            )
            plane.recalls.open(change, recall, change.meta.budget_bytes)
            change.after(lambda: self._regraph([number for number, _ in live]))
        return recall.recall_id

    def graded(self, recall_id: bytes, outcome: float, influences: Mapping[int, float], tokens: int) -> None:
        """Keep an outcome: new influence of the recall's entries, window, stage tally; the id closes."""
        plane = self._plane
        if plane.recalls.get(recall_id) is None:
            raise InputError(Code.UNKNOWN_RECALL, "no such open recall", recall_id=recall_id.hex())
        live = {number: value for number, value in influences.items() if number in plane.table}
        rows = plane.table.take(live)
        heat = rows["heat"]
        heat["influence"] = list(live.values())
        heat["influence_stage"] = plane.journal.meta.stage
        heat["grades"] = np.minimum(heat["grades"].astype(np.int64) + 1, _MOST_U16)
        with plane.journal.write() as change:
            self._save(change, rows)
            plane.recalls.close(change, recall_id)
            meta = change.meta
            window = np.append(np.frombuffer(meta.outcomes, "<f2"), outcome)[-WINDOW:]
            change.change(
                outcomes=window.astype("<f2").tobytes(),
                stage_grades=meta.stage_grades + 1,
                stage_outcome_sum=meta.stage_outcome_sum + outcome,
                stage_tokens=meta.stage_tokens + tokens,
            )
            for number, version in zip(live, rows["version"].tolist(), strict=True):
                plane.tell(change, number, Op.STATE, version)

    def _save(self, change: Transaction, rows: Structured) -> None:
        change.db.executemany(
            "INSERT OR REPLACE INTO heat (heat, number) VALUES (?, ?)", packed_rows(rows, "heat")
        )
        change.after(partial(self._plane.table.put_many, rows))

    def _regraph(self, numbers: Sequence[int]) -> None:
        rows = self._plane.table.take(numbers)
        rows["graph_bytes"] = [self._plane.graph.charged_bytes(number) for number in numbers]
        self._plane.table.put_many(rows)


def _heat_up(rows: Structured, stage: int, event: int) -> None:
    """One more recall: stage counts of an earlier stage roll over, and idle stages have cost influence."""
    heat = rows["heat"]
    touched = heat["recall_stage"].astype(np.int64)
    idle = stage - 1 - np.maximum(touched, heat["influence_stage"])
    heat["influence"] = np.where(heat["grades"] > 0, decay(heat["influence"], idle), 0.0)
    before = np.where(touched == stage - 1, heat["recalls_this_stage"], 0)
    heat["recalls_last_stage"] = np.where(touched == stage, heat["recalls_last_stage"], before)
    now = np.where(touched == stage, heat["recalls_this_stage"].astype(np.int64), 0) + 1
    heat["recalls_this_stage"] = np.minimum(now, _MOST_U16)
    heat["recall_stage"] = stage
    heat["recalls"] += 1
    heat["last_recall_event"] = event
