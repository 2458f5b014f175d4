"""What an entry would come to at a rung: measured on entries that are there, else on a packed sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from edge_agent.bodies import ROW_BYTES
from edge_agent.plane import Plane
from edge_agent.reader import Reader
from shared.memory.blocks import BlockMember, pack_block, runs
from shared.memory.model import Kind, Rung

# Two full blocks of short entries: enough for a ratio, a few milliseconds to pack.
SAMPLE_ENTRIES = 128
# Entries at a rung from which their own ratio is worth more than the sample's.
_MEASURED_ENTRIES = 256
# A sample is taken again when a kind has grown this many times.
_STALE_GROWTH = 2.0


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
        rows = self._plane.table.rows()
        kinds, counts = np.unique(rows["facts"]["kind"], return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            if count >= _STALE_GROWTH * self._sampled_at.get(Kind(kind), 0):
                self._sample(Kind(kind), count)
        self._ratios = {spec.rung: self._all(spec.rung) for spec in self._plane.ladder.rungs}

    def ratios(self, kinds: NDArray[np.uint8], rung: Rung) -> NDArray[np.float64]:
        """The ratio for each row's kind."""
        return self._ratios[rung][kinds]

    def _all(self, rung: Rung) -> NDArray[np.float64]:
        ratios = np.full(256, np.inf)
        facts, body = self._plane.table.rows()["facts"], self._plane.table.rows()["body_bytes"]
        for kind in Kind:
            here = (facts["kind"] == kind) & (facts["rung"] == rung)
            if int(np.count_nonzero(here)) >= _MEASURED_ENTRIES:
                ratios[kind] = float(body[here].sum(dtype=np.float64)) / float(
                    facts["text_bytes"][here].sum()
                )
            else:
                sampled = self._sampled.get((kind, rung))
                ratios[kind] = self._guessed(kind, rung) if sampled is None else sampled
        return ratios

    def _guessed(self, kind: Kind, rung: Rung) -> float:
        """By the ladder's aims from what is there: a restart may find no original left to sample."""
        rows = self._plane.table.rows()
        facts, aims = rows["facts"], {spec.rung: spec.text_fraction for spec in self._plane.ladder.rungs}
        same_kind = facts["kind"] == kind
        held = [known for known in aims if bool((same_kind & (facts["rung"] == known)).any())]
        if not held:
            return float("inf")
        nearest = min(held, key=lambda known: abs(known - rung))
        here = same_kind & (facts["rung"] == nearest)
        ratio = float(rows["body_bytes"][here].sum(dtype=np.float64)) / float(facts["text_bytes"][here].sum())
        return min(ratio * aims[rung] / aims[nearest], 1.0)

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
