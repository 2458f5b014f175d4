"""Reads of the store: every base is verified before anyone sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edge_agent.entries import Heat, Overlay, StoredEntry
from edge_agent.plane import Plane, size_bytes
from edge_agent.table import NO_OVERLAY, Flag, Structured, packed_rows, recalls_last_stage
from shared.errors import Code, IntegrityError
from shared.memory.codec import digest
from shared.memory.model import Kind, MemoryClass, Provenance, Rung

# Rows whose bodies are held at once while many are read.
_BATCH_ROWS = 1024
_RUNGS = {int(rung): rung for rung in Rung}


@dataclass(frozen=True)
class Base:
    """A verified base: the original's text at FULL and PACKED, a record at a lossy rung."""

    rung: Rung
    text: str
    record: bytes


class Reader:
    """Entries, originals and texts by number."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def entry(self, number: int) -> StoredEntry:
        """One entry; IntegrityError(CORRUPT) marks it damaged first."""
        row = self._plane.row(number).copy()
        base = self.base(row)
        base_text = self._render(row, base)
        overlay = self._overlay(row)
        facts, stage = row["facts"], self._plane.journal.meta.stage
        rung = Rung(int(facts["rung"]))
        stored = base.record or base.text.encode()
        return StoredEntry(
            number=number,
            public_id=row["id"].tobytes(),
            kind=Kind(int(facts["kind"])),
            memory_class=MemoryClass(int(facts["memory_class"])),
            version=int(row["version"]),
            rung=rung,
            overlay=overlay,
            text=base_text if overlay is None else overlay.text,
            base_text=base_text,
            record=base.record,
            provenance=_provenance(rung, overlay),
            digest=row["digest"].tobytes(),
            base_digest=digest(stored),
            text_bytes=int(facts["text_bytes"]),
            size_bytes=float(size_bytes(row.reshape(1))[0]),
            created_wall_ns=int(facts["created_wall_ns"]),
            created_stage=int(facts["created_stage"]),
            levelling=int(facts["levelling"]),
            archived=bool(int(facts["flags"]) & Flag.ARCHIVED),
            core=bool(int(facts["flags"]) & Flag.CORE),
            references=self._plane.graph.references(number),
            heat=_heat(row, stage),
        )

    def base(self, row: np.void) -> Base:
        """The exact base of a row; a damaged one is marked before the error leaves."""
        _, found = next(self.bases(row.reshape(1)))
        if isinstance(found, IntegrityError):
            self.note_damage({int(row["number"]): found})
            raise found
        return found

    def bases(self, rows: Structured) -> Iterator[tuple[int, Base | IntegrityError]]:
        """(position, base or what is wrong with it) of many rows, read in the order given."""
        for start in range(0, len(rows), _BATCH_ROWS):
            part = rows[start : start + _BATCH_ROWS]
            rungs, blocks = part["facts"]["rung"].tolist(), part["facts"]["block"].tolist()
            full = [block for block, rung in zip(blocks, rungs, strict=True) if rung == Rung.FULL]
            texts = dict(self._plane.bodies.texts(full))
            digests = packed_rows(part, "digest")
            for offset, (known, number) in enumerate(digests):
                rung = _RUNGS[rungs[offset]]
                try:
                    yield start + offset, self._verified(number, rung, blocks[offset], known, texts)
                except IntegrityError as problem:
                    yield start + offset, problem

    def originals(self, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        """(number, verified original) of those that still hold it and are not damaged."""
        rows = self._plane.table.take(numbers)
        for position, base in self.bases(rows):
            if isinstance(base, Base) and not base.rung.lossy:
                yield numbers[position], base.text

    def texts(self, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        """(number, text that recall shows), in storage order; damaged entries are left out."""
        ordered = self._plane.table.in_storage_order(numbers)
        rows = self._plane.table.take(ordered)
        overlaid = rows["number"][rows["overlay_rung"] != NO_OVERLAY].tolist()
        shown = dict(self._overlay_texts(overlaid))
        for position, base in self.bases(rows):
            number = ordered[position]
            if number in shown:
                yield number, shown[number]
            elif isinstance(base, Base):
                yield number, self._render(rows[position], base)

    def note_damage(self, problems: Mapping[int, IntegrityError]) -> None:
        """Mark entries that failed their check: never served. A missing dictionary may come back."""
        numbers = [number for number, problem in problems.items() if problem.code is Code.CORRUPT]
        if not numbers:
            return
        rows = self._plane.table.take(numbers)
        rows["facts"]["flags"] |= np.uint8(Flag.DAMAGED)
        with self._plane.journal.write() as change:
            change.db.executemany("UPDATE entry SET facts = ? WHERE number = ?", packed_rows(rows, "facts"))
            change.after(lambda: self._plane.table.put_many(rows))

    def _render(self, row: np.void, base: Base) -> str:
        if not base.rung.lossy:
            return base.text
        return self._plane.codecs[Kind(int(row["facts"]["kind"]))].render(base.record)

    def _verified(self, number: int, rung: Rung, block: int, known: bytes, texts: dict[int, str]) -> Base:
        if rung is Rung.FULL:
            text = texts.get(block)
            if text is None or digest(text.encode()) != known:
                raise _damaged(number, rung)
            return Base(rung, text, b"")
        record = self._plane.bodies.records(block).get(number)
        if record is None:
            raise _damaged(number, rung)
        if rung.lossy:
            return Base(rung, "", record)
        if digest(record) != known:
            raise _damaged(number, rung)
        return Base(rung, record.decode(), b"")

    def _overlay(self, row: np.void) -> Overlay | None:
        if int(row["overlay_rung"]) == NO_OVERLAY:
            return None
        held = self._plane.db.query_one(
            "SELECT rung, body, model, created_wall_ns FROM overlay WHERE number = ?", (int(row["number"]),)
        )
        return None if held is None else Overlay(Rung(held[0]), *held[1:])

    def _overlay_texts(self, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        for number in numbers:
            yield from self._plane.db.query("SELECT number, body FROM overlay WHERE number = ?", (number,))


def _heat(row: np.void, stage: int) -> Heat:
    heat = row["heat"]
    return Heat(
        influence=float(heat["influence"]),
        influence_stage=int(heat["influence_stage"]),
        grades=int(heat["grades"]),
        recalls=int(heat["recalls"]),
        recalls_this_stage=int(heat["recalls_this_stage"]) if int(heat["recall_stage"]) == stage else 0,
        recalls_last_stage=int(recalls_last_stage(heat.reshape(1), stage)[0]),
        last_recall_event=int(heat["last_recall_event"]),
    )


def _provenance(rung: Rung, overlay: Overlay | None) -> Provenance:
    if overlay is not None:
        return Provenance.REGENERATED
    return Provenance.EXACT if rung.lossy else Provenance.ORIGINAL


def _damaged(number: int, rung: Rung) -> IntegrityError:
    return IntegrityError(
        Code.CORRUPT,
        "the entry's bytes are damaged",
        hint="Restore it from the hub",
        number=number,
        rung=rung.name,
    )
