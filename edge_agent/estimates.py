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
from shared.memory.blocks import MAX_TEXT_BYTES, BlockMember, pack_block, runs
from shared.memory.model import Kind, Rung

# Two full blocks of short entries: enough for a ratio, a few milliseconds to pack.
SAMPLE_ENTRIES = 128
SAMPLE_BYTES = 2 * MAX_TEXT_BYTES
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
        self._sampled_at: dict[tuple[Kind, bool], int] = {}
        self._ratios: dict[Rung, NDArray[np.float64]] = {}

    def refresh(self, *, lossy: bool = True) -> None:
        """Measure again; samples only kinds that are new or have grown. Lossy ones must be distilled."""
        rows = self._plane.table.raw()
        rows = rows[rows["number"] != 0]
        held = _Held.of(rows)
        for kind in Kind:
            count = int(held.entries[kind].sum())
            for distilled in (False, True) if lossy else (False,):
                if count and count >= _STALE_GROWTH * self._sampled_at.get((kind, distilled), 0):
                    self._sample(kind, count, distilled=distilled)
        self._ratios = {
            spec.rung: np.array([self._ratio(held, kind, spec.rung) for kind in Kind])
            for spec in self._plane.ladder.rungs
        }

    def ratios(self, kinds: NDArray[np.uint8], rung: Rung) -> NDArray[np.float64]:
        """The ratio for each row's kind."""
        return self._ratios[rung][kinds]

    def forget(self, kind: Kind) -> None:
        """A dictionary came: what was sampled without it says too much."""
        for distilled in (False, True):
            self._sampled_at.pop((kind, distilled), None)

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

    def _sample(self, kind: Kind, count: int, *, distilled: bool) -> None:
        """Pack some originals through the lossless rungs, or (distilled) through the lossy ones."""
        texts = list(self._originals(kind))
        if not texts:
            return
        self._sampled_at[kind, distilled] = count
        originals = [text.encode() for text in texts]
        total = sum(map(len, originals))
        records: Sequence[bytes] = originals
        for spec in self._plane.ladder.rungs:
            if spec.rung.lossy is not distilled:
                continue
            if distilled:
                if kind not in self._plane.codecs:
                    return
                records = self._lowered(kind, spec.rung, texts, None if records is originals else records)
            self._sampled[kind, spec.rung] = self._packed(kind, records, coded=spec.coded) / total

    def _lowered(
        self, kind: Kind, rung: Rung, texts: Sequence[str], records: Sequence[bytes] | None
    ) -> list[bytes]:
        codec, ladder = self._plane.codecs[kind], self._plane.ladder
        if records is None:
            return [codec.drop(text, ladder, rung).record for text in texts]
        return [codec.lower(record, ladder, rung).record for record in records]

    def _originals(self, kind: Kind) -> Iterator[str]:
        facts = (rows := self._plane.table.rows())["facts"]
        exact = rows["number"][(facts["kind"] == kind) & (facts["rung"] <= Rung.PACKED)]
        # Neighbours in storage share a block later on: two runs, not a scatter.
        half = SAMPLE_ENTRIES // 2
        middle = max(len(exact) // 2, half)
        chosen = [*exact[:half].tolist(), *exact[middle : middle + half].tolist()]
        size = 0
        for _, text in self._reader.originals(chosen):
            yield text
            size += len(text)
            if size > SAMPLE_BYTES:
                return

    def _packed(self, kind: Kind, records: Sequence[bytes], *, coded: bool) -> int:
        dictionary = self._plane.dictionaries.current(kind) if coded else None
        size, level = 0, self._plane.bodies.level
        for run in runs([len(record) for record in records]):
            members = [BlockMember(number, record) for number, record in enumerate(records[run])]
            size += len(pack_block(members, level=level, dictionary=dictionary, coded=coded).body) + ROW_BYTES
        return size


def _sums(cell: NDArray[np.int64], weights: NDArray[np.float32], cells: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(cell, weights, cells), np.float64)
