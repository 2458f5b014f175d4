"""Builds the link's deltas from the store's present rows (the table of spec.md 5)."""

from __future__ import annotations

import numpy as np

from edge_agent.entries import ArchiveMode
from edge_agent.outbox import Op, Waiting
from edge_agent.plane import Plane
from edge_agent.reader import Base, Reader
from edge_agent.table import NO_OVERLAY, STUB, Flag
from shared.errors import IntegrityError
from shared.memory.codec import encode_self_contained
from shared.memory.model import Kind, MemoryClass, Provenance, Rung
from shared.messages import Created, Delta, Forgotten, Layer, Layers, Residue, State


class DeltaBuilder:
    """Turns a waiting row into a delta; None where there is nothing (left) to say."""

    def __init__(self, plane: Plane, reader: Reader) -> None:
        self._plane = plane
        self._reader = reader
        self.values: dict[int, float] = {}
        """The latest v of Eq. 6 by number, as the monitor computed it."""

    def build(self, waiting: Waiting) -> Delta | None:
        """The delta of a row of the outbox."""
        row = self._plane.table.get(waiting.number)
        if waiting.op is Op.FORGOTTEN:
            return self._forgotten(waiting)
        if row is None:
            return self._evicted(waiting) if waiting.op is Op.STATE else None
        if waiting.op is Op.CREATED:
            return self._created(waiting.seq, row)
        if waiting.op is Op.RESIDUE:
            return self._residue(waiting.seq, row)
        if waiting.op is Op.LAYERS:
            return self._layers(waiting.seq, row)
        return self._state(waiting.seq, row)

    def _created(self, seq: int, row: np.void) -> Created:
        number, facts = int(row["number"]), row["facts"]
        original = b""
        if self._plane.archive is ArchiveMode.ALWAYS:
            base = self._exact(row)
            original = encode_self_contained(base.text.encode()).body if base is not None else b""
        return Created(
            seq,
            number,
            row["id"].tobytes(),
            int(row["version"]),
            Kind(int(facts["kind"])),
            MemoryClass(int(facts["memory_class"])),
            int(facts["created_wall_ns"]),
            row["digest"].tobytes(),
            self._value(number),
            int(facts["text_bytes"]),
            self._plane.graph.references(number),
            original,
        )

    def _residue(self, seq: int, row: np.void) -> Residue | State | None:
        rung = Rung(int(row["facts"]["rung"]))
        if not rung.lossy:
            # Lifted again before the batch was sealed.
            return self._state(seq, row)
        base = self._base(row)
        if base is None:
            return None
        return Residue(
            seq,
            int(row["number"]),
            int(row["version"]),
            rung,
            int(row["facts"]["levelling"]),
            encode_self_contained(base.record).body,
        )

    def _layers(self, seq: int, row: np.void) -> Layers | None:
        base = self._exact(row)
        codec = self._plane.codecs.get(Kind(int(row["facts"]["kind"])))
        if base is None or codec is None or int(row["facts"]["flags"]) & Flag.ARCHIVED:
            return None
        number = int(row["number"])
        dropped = codec.layers(base.text, self._plane.ladder, self._plane.choices.of(number))
        return Layers(
            seq,
            number,
            int(row["version"]),
            self._plane.levelling(Kind(int(row["facts"]["kind"])), number),
            tuple(Layer(layer.rung_above, layer.payload) for layer in dropped),
        )

    def _state(self, seq: int, row: np.void) -> State:
        number, rung = int(row["number"]), Rung(int(row["facts"]["rung"]))
        overlay = int(row["overlay_rung"])
        if overlay != NO_OVERLAY:
            provenance = Provenance.REGENERATED
        else:
            provenance = Provenance.EXACT if rung.lossy else Provenance.ORIGINAL
        shown = rung if overlay == NO_OVERLAY else Rung(overlay)
        return State(seq, number, int(row["version"]), rung, shown, provenance, self._value(number))

    def _evicted(self, waiting: Waiting) -> State:
        stub = self._plane.stubs.get(waiting.number)
        value = 0.0 if stub is None else float(np.frombuffer(stub, STUB)[0]["value"])
        return State(
            waiting.seq,
            waiting.number,
            waiting.version,
            Rung.EVICTED,
            Rung.EVICTED,
            Provenance.EXACT,
            value,
        )

    def _forgotten(self, waiting: Waiting) -> Forgotten | None:
        held = self._plane.db.query_one("SELECT hash FROM tombstone WHERE number = ?", (waiting.number,))
        return None if held is None else Forgotten(waiting.seq, waiting.number, waiting.version, held[0])

    def _exact(self, row: np.void) -> Base | None:
        return None if Rung(int(row["facts"]["rung"])).lossy else self._base(row)

    def _base(self, row: np.void) -> Base | None:
        try:
            return self._reader.base(row)
        except IntegrityError:
            # Marked damaged by the reader; the hub is not told of bytes that nobody can vouch for.
            return None

    def _value(self, number: int) -> float:
        return self.values.get(number, 0.0)
