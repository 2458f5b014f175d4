"""What an entry would come to at a rung: measured on entries that are there, else on a packed sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge_agent.bodies import ROW_BYTES
from edge_agent.plane import Plane
from edge_agent.reader import Reader
from edge_agent.table import Structured
from shared.memory.blocks import BlockMember, pack_block, runs
from shared.memory.model import Kind, Rung

# Two full blocks of short entries: enough for a ratio, a few milliseconds to pack.
SAMPLE_ENTRIES = 128
# Entries at a rung from which their own ratio is worth more than the sample's.
_MEASURED_ENTRIES = 256
# A sample is taken again when a kind has grown this many times.
_STALE_GROWTH = 2.0


@dataclass(frozen=True)
class _Held:
    """Entries, body bytes and text bytes by kind and rung."""

    entries: NDArray[np.int64]
    body_bytes: NDArray[np.float64]
    text_bytes: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Structured) -> _Held:
        """Sums over live rows."""
        facts = rows["facts"]
        cell = facts["kind"].astype(np.int64) * len(Rung) + facts["rung"]
        shape, cells = (len(Kind), len(Rung)), len(Kind) * len(Rung)
        return cls(
            np.bincount(cell, minlength=cells).reshape(shape),
            _sums(cell, rows["body_bytes"], cells).reshape(shape),
            _sums(cell, facts["text_bytes"], cells).reshape(shape),
        )

    def ratio(self, kind: Kind, rung: Rung) -> float:
        """Body bytes a byte of text."""
        return float(self.body_bytes[kind, rung] / max(self.text_bytes[kind, rung], 1.0))


class Estimates:
    """Body bytes as a share of the original's text, per kind and rung."""

    def __init__(self, plane: Plane, reader: Reader) -> None:
        self._plane = plane
        self._reader = reader
        self._sampled: dict[tuple[Kind, Rung], float] = {}
        self._sampled_at: dict[Kind, int] = {}
        self._ratios: dict[Rung, NDArray[np.float64]] = {}

    def refresh(self) -> None:
        """Measure again; samples only kinds that are new or have grown."""
        rows = self._plane.table.raw()
        rows = rows[rows["number"] != 0]
        held = _Held.of(rows)
        for kind in Kind:
            count = int(held.entries[kind].sum())
            if count and count >= _STALE_GROWTH * self._sampled_at.get(kind, 0):
                self._sample(kind, count)
        self._ratios = {
            spec.rung: np.array([self._ratio(held, kind, spec.rung) for kind in Kind])
            for spec in self._plane.ladder.rungs
        }

    def ratios(self, kinds: NDArray[np.uint8], rung: Rung) -> NDArray[np.float64]:
        """The ratio for each row's kind."""
        return self._ratios[rung][kinds]

    def forget(self, kind: Kind) -> None:
        """A dictionary came: what was sampled without it says too much."""
        self._sampled_at.pop(kind, None)

    def _ratio(self, held: _Held, kind: Kind, rung: Rung) -> float:
        sampled = self._sampled.get((kind, rung))
        if held.entries[kind, rung] >= _MEASURED_ENTRIES:
            return held.ratio(kind, rung)
        return self._guessed(held, kind, rung) if sampled is None else sampled

    def _guessed(self, held: _Held, kind: Kind, rung: Rung) -> float:
        """By the ladder's aims from what is there: a restart may find no original left to sample."""
        aims = {spec.rung: spec.text_fraction for spec in self._plane.ladder.rungs}
        known = [other for other in aims if held.entries[kind, other]]
        if not known:
            return float("inf")
        nearest = min(known, key=lambda other: abs(other - rung))
        return min(held.ratio(kind, nearest) * aims[rung] / aims[nearest], 1.0)

    def _sample(self, kind: Kind, count: int) -> None:
        originals = list(self._originals(kind))
        if not originals:
            return
        self._sampled_at[kind] = count
        texts = [text.encode() for _, text in originals]
        total = sum(map(len, texts))
        ladder, codec = self._plane.ladder, self._plane.codecs.get(kind)
        records: Sequence[bytes] = texts
        for spec in ladder.rungs:
            if spec.rung.lossy:
                if codec is None:
                    continue
                lossless = records is texts
                records = [
                    (
                        codec.drop(text, ladder, spec.rung)
                        if lossless
                        else codec.lower(record, ladder, spec.rung)
                    ).record
                    for (_, text), record in zip(originals, records, strict=True)
                ]
            self._sampled[kind, spec.rung] = self._packed(kind, records, coded=spec.coded) / total

    def _originals(self, kind: Kind) -> Iterator[tuple[int, str]]:
        facts = (rows := self._plane.table.rows())["facts"]
        exact = rows["number"][(facts["kind"] == kind) & (facts["rung"] <= Rung.PACKED)]
        # Neighbours in storage share a block later on: two runs, not a scatter.
        half = SAMPLE_ENTRIES // 2
        middle = max(len(exact) // 2, half)
        chosen = [*exact[:half].tolist(), *exact[middle : middle + half].tolist()]
        yield from self._reader.originals(chosen)

    def _packed(self, kind: Kind, records: Sequence[bytes], *, coded: bool) -> int:
        dictionary = self._plane.dictionaries.current(kind) if coded else None
        size = 0
        for run in runs([len(record) for record in records]):
            members = [BlockMember(number, record) for number, record in enumerate(records[run])]
            size += len(pack_block(members, dictionary=dictionary, coded=coded).body) + ROW_BYTES
        return size


def _sums(cell: NDArray[np.int64], weights: NDArray[np.float32], cells: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(cell, weights, cells), np.float64)
