"""Decides whether a kind gets a dictionary: trained on its own text, kept only where it pays for itself."""

from __future__ import annotations

from edge_agent.plane import Plane
from edge_agent.reader import Reader
from edge_agent.table import Flag
from shared.memory.blocks import BlockMember, block_plaintext, runs
from shared.memory.codec import Adoption, Dictionary, train_dictionary, worth_adopting
from shared.memory.model import Kind, Rung
from shared.units import KIB

# Below 20 MB of text a larger one costs more than it saves (lossless-rung.md).
DICTIONARY_BYTES = 16 * KIB
_LEAST_ENTRIES = 100
_LEAST_TEXT_BYTES = 10 * DICTIONARY_BYTES
# A dictionary is charged in full before it has saved a byte.
_MOST_OF_BUDGET = 0.05
# Originals looked at: half of them to train on, half to measure on.
_SAMPLED_BYTES = 2 * _LEAST_TEXT_BYTES


class Trainer:
    """Runs at the first pack of a kind; a kind is tried again only once it has grown fourfold."""

    def __init__(self, plane: Plane, reader: Reader) -> None:
        self._plane = plane
        self._reader = reader
        self._tried_at: dict[Kind, int] = {}

    def consider(self, kind: Kind) -> Adoption | None:
        """Train, measure on held-out blocks, adopt where it pays; None where there is nothing to decide."""
        plane = self._plane
        rows = plane.table.rows()
        facts = rows["facts"]
        usable = (
            (facts["kind"] == kind) & (facts["rung"] <= Rung.PACKED) & (facts["flags"] & Flag.DAMAGED == 0)
        )
        count, text_bytes = int(usable.sum()), int(facts["text_bytes"][usable].sum())
        if (
            plane.dictionaries.current(kind) is not None
            or count < max(_LEAST_ENTRIES, 4 * self._tried_at.get(kind, 0))
            or text_bytes < _LEAST_TEXT_BYTES
            or plane.journal.meta.budget_bytes * _MOST_OF_BUDGET < DICTIONARY_BYTES
        ):
            return None
        self._tried_at[kind] = count
        texts = self._sample(rows["number"][usable].tolist(), text_bytes)
        body = train_dictionary(texts[::2], DICTIONARY_BYTES)
        candidate = Dictionary.of(plane.journal.meta.next_dictionary, body)
        verdict = worth_adopting(_blocks(texts[1::2]), text_bytes, candidate, level=plane.bodies.level)
        if verdict.adopt:
            with plane.journal.write() as change:
                plane.dictionaries.adopt(change, kind, body)
        return verdict

    def retire(self) -> tuple[int, ...]:
        """Drop dictionaries that no block names."""
        plane = self._plane
        if not plane.dictionaries.held.keys() - plane.bodies.dictionaries_in_use():
            return ()
        with plane.journal.write() as change:
            return plane.dictionaries.retire(change, plane.bodies.dictionaries_in_use())

    def _sample(self, numbers: list[int], text_bytes: int) -> list[bytes]:
        """Originals spread over the store, in storage order."""
        step = max(1, text_bytes // _SAMPLED_BYTES)
        ordered = self._plane.table.in_storage_order(numbers[::step])
        return [text.encode() for _, text in self._reader.originals(ordered)]


def _blocks(texts: list[bytes]) -> list[bytes]:
    """Held-out text as it would be packed."""
    return [
        block_plaintext([BlockMember(number, text) for number, text in enumerate(texts[run])])
        for run in runs([len(text) for text in texts])
    ]
