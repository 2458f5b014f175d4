"""Monitor: recalls and outcomes become influence (Eq. 8). Belongs to the store's thread."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from edge_agent.plane import size_bytes
from edge_agent.retrieval import Found, Retrieval
from edge_agent.store import Store
from shared.errors import Code, InputError, TransientError
from shared.memory import value
from shared.memory.model import Kind
from shared.memory.value import ValueMode
from shared.memory.vectors import Floats
from shared.ports import RetainedEntry, Retention

# Graded ids are remembered so that a second grade is told apart from an id that never was.
_GRADED_KEPT = 10_000
# Where the caller does not tell the tokens of an answer they are taken from what it was given to read.
BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class Attributed:
    """What an outcome was credited to."""

    entries: int
    tokens: int
    estimated: bool


class Monitor:
    """Attributes outcomes to the entries that served them."""

    def __init__(
        self,
        store: Store,
        retrieval: Retrieval,
        retention: Retention | None,
        mode: ValueMode = ValueMode.PRODUCT,
    ) -> None:
        self._store = store
        self._retrieval = retrieval
        self._retention = retention
        self._mode = mode
        self._graded: OrderedDict[bytes, None] = OrderedDict()
        self._read_bytes: OrderedDict[bytes, int] = OrderedDict()

    def recall(
        self, query: str, k: int, max_bytes: int, vector: Floats | None = None
    ) -> tuple[bytes | None, Found]:
        """A recorded recall: its id and its hits; no id where the disk takes no record."""
        found = self._retrieval.find(query, k, max_bytes, vector)
        weights = value.weights([hit.score for hit in found.hits], self._mode).tolist()
        numbers = [hit.entry.number for hit in found.hits]
        try:
            recall_id = self._store.record_recall(list(zip(numbers, weights, strict=True)))
        except TransientError:
            # A full disk may cost the grade, never the memory.
            return None, found
        if self._retention is not None:
            self._retention.on_read(query, numbers, self._store.meta.event)
        read = len(query.encode()) + sum(len(hit.text.encode()) for hit in found.hits)
        _keep(self._read_bytes, recall_id, read)
        return recall_id, found

    def wrote(self, number: int) -> None:
        """Tell a comparison policy of a write."""
        if self._retention is None:
            return
        row = self._store.table.take([number])
        facts, event = row["facts"][0], self._store.meta.event
        size = float(size_bytes(row)[0])
        entry = RetainedEntry(number, Kind(int(facts["kind"])), int(facts["created_event"]), event, size, 0.0)
        self._retention.on_write(entry, event)

    def outcome(self, recall_id: bytes, g: float, tokens: int | None) -> Attributed:
        """Eq. 8 for every entry of the recall that is still there; once."""
        recall = self._store.open_recall(recall_id)
        if recall is None:
            raise self._unknown(recall_id)
        window = (*self._store.outcomes(), g)[-value.WINDOW :]
        held = [(number, weight) for number, weight in recall.hits if number in self._store.table]
        heats = self._store.table.take([number for number, _ in held])["heat"]
        influences = {
            number: value.influence(previous, weight, g, window)
            for (number, weight), previous in zip(held, heats["influence"].tolist(), strict=True)
        }
        counted = tokens if tokens is not None else self._estimated_tokens(recall_id)
        self._store.record_outcome(recall_id, g, influences, counted)
        _keep(self._graded, recall_id, None)
        self._read_bytes.pop(recall_id, None)
        return Attributed(len(influences), counted, tokens is None)

    def _estimated_tokens(self, recall_id: bytes) -> int:
        return -(-self._read_bytes.get(recall_id, 0) // BYTES_PER_TOKEN)

    def _unknown(self, recall_id: bytes) -> InputError:
        if recall_id in self._graded:
            return InputError(Code.ALREADY_GRADED, "this recall was graded before", recall_id=recall_id.hex())
        return InputError(
            Code.UNKNOWN_RECALL,
            "no such open recall",
            recall_id=recall_id.hex(),
            hint="Ids become void when graded, or when many newer recalls wait for their grade",
        )


def _keep(kept: OrderedDict[bytes, int] | OrderedDict[bytes, None], key: bytes, fact: int | None) -> None:
    kept[key] = fact  # type: ignore[assignment]
    while len(kept) > _GRADED_KEPT:
        kept.popitem(last=False)
