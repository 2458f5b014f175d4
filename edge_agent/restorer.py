"""Lifts entries: exact restores of lossy and evicted ones, and overlays of admitted drafts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from edge_agent.entries import ExactText, Moved, Overlay
from edge_agent.mover import Mover
from edge_agent.outbox import Op
from edge_agent.plane import OVERLAY_ROW_BYTES, Plane
from edge_agent.reader import Base
from edge_agent.table import NO_OVERLAY, STUB, Flag, Structured, blank_row
from edge_agent.transaction import Transaction
from shared.errors import Code, InputError, IntegrityError, PermanentError
from shared.memory.codec import digest
from shared.memory.model import Kind, Rung
from shared.ports import ArchivedEntry

OVERLAY_RUNGS = frozenset({Rung.FULL, Rung.CONDENSED, Rung.COMPRESSED, Rung.OUTLINE, Rung.SKELETAL})


class Restorer:
    """Promotions other than unpacking, which is a move like any other."""

    def __init__(self, plane: Plane, mover: Mover) -> None:
        self._plane = plane
        self._mover = mover

    def restore(self, texts: Sequence[ExactText], to: Rung) -> tuple[Moved, ...]:
        """Put verified originals at `to` (exact, or a lossy rung above the present base).

        Checked as a whole before anything changes: a wrong digest is IntegrityError(DIGEST_MISMATCH).
        """
        rows = np.concatenate([self._row(item, to).reshape(1) for item in texts])
        old = rows.copy()
        revived = [item.archived for item in texts if item.number in self._plane.stubs]
        bases = {item.number: Base(Rung.FULL, item.text, b"") for item in texts}
        live = np.array([item.number in self._plane.table for item in texts], np.bool_)
        with self._plane.journal.write() as change:
            self._mover.place(
                change, rows, np.ones(len(rows), np.bool_), np.full(len(rows), to, np.uint8), bases
            )
            self._mover.leave(change, old[live])
            self._uncover(change, rows, to)
            self._revive(change, rows[~live], [entry for entry in revived if entry is not None])
            self._mover.save(change, rows[live])
            for row in rows:
                self._plane.tell(change, int(row["number"]), Op.STATE, int(row["version"]))
        origins = np.where(live, old["facts"]["rung"], Rung.EVICTED)
        return tuple(
            Moved(number, Rung(origin), to)
            for number, origin in zip(rows["number"].tolist(), origins.tolist(), strict=True)
        )

    def cover(self, number: int, version: int, base_digest: bytes, overlay: Overlay) -> None:
        """Put an admitted draft above the base it was made for; a superseded one is refused."""
        row = self._plane.row(number).copy()
        rung = Rung(int(row["facts"]["rung"]))
        if int(row["version"]) != version or self._mover.base_digest(row) != base_digest:
            raise InputError(Code.NOT_RESTORABLE, "the draft is for an older base", number=number)
        if overlay.rung not in OVERLAY_RUNGS or overlay.rung >= rung:
            raise PermanentError(
                Code.INTERNAL, "an overlay stands above its base", number=number, rung=overlay.rung.name
            )
        self._plane.ladder.index(overlay.rung)
        row["overlay_rung"] = overlay.rung
        row["overlay_bytes"] = OVERLAY_ROW_BYTES + len(overlay.text.encode()) + len(overlay.model.encode())
        with self._plane.journal.write() as change:
            change.db.execute(
                "INSERT OR REPLACE INTO overlay (number, rung, model, created_wall_ns, body)"
                " VALUES (?, ?, ?, ?, ?)",
                (number, overlay.rung, overlay.model, overlay.created_wall_ns, overlay.text),
            )
            self._plane.tell(change, number, Op.STATE, version)
            change.after(partial(self._plane.table.put, row))

    def uncover(self, number: int) -> None:
        """Drop an entry's overlay."""
        row = self._plane.row(number).copy().reshape(1)
        with self._plane.journal.write() as change:
            self._mover.uncover(change, row)
            self._plane.tell(change, number, Op.STATE, int(row["version"][0]))
            change.after(partial(self._plane.table.put_many, row))

    def _row(self, item: ExactText, to: Rung) -> np.void:
        """The row that will hold an original, checked against what is known of the entry."""
        held = self._plane.table.get(item.number)
        row = self._revived_row(item) if held is None else held.copy()
        if digest(item.text.encode()) != row["digest"].tobytes():
            raise IntegrityError(
                Code.DIGEST_MISMATCH,
                "the source gave another text",
                number=item.number,
                hint="Nothing was changed",
            )
        facts = row["facts"]
        damaged = bool(int(facts["flags"]) & Flag.DAMAGED)
        facts["flags"] = int(facts["flags"]) & ~Flag.DAMAGED
        if held is not None and to >= int(facts["rung"]) and not damaged:
            raise PermanentError(Code.INTERNAL, "a restore goes up", number=item.number, to=to.name)
        if to.lossy:
            self._mover.check_levels(row, self._plane.levelling(Kind(int(facts["kind"])), item.number))
        return row

    def _revived_row(self, item: ExactText) -> np.void:
        stub, archived = self._plane.stubs.get(item.number), item.archived
        if stub is None or archived is None:
            raise InputError(Code.NOT_RESTORABLE, "the entry left no stub", number=item.number)
        held = np.frombuffer(stub, STUB)[0]
        if archived.digest[:8] != held["digest_prefix"].tobytes() or self._plane.table.number_of(
            archived.public_id
        ):
            raise IntegrityError(Code.DIGEST_MISMATCH, "the archive holds another entry", number=item.number)
        return _row_of(item, archived)

    def _revive(self, change: Transaction, rows: Structured, entries: Sequence[ArchivedEntry]) -> None:
        plane = self._plane
        numbers = rows["number"].tolist()
        change.db.executemany("DELETE FROM stub WHERE number = ?", [(number,) for number in numbers])
        change.db.executemany(
            "INSERT INTO entry (number, id, digest, version, facts) VALUES (?, ?, ?, ?, ?)",
            [
                (
                    int(row["number"]),
                    row["id"].tobytes(),
                    row["digest"].tobytes(),
                    int(row["version"]),
                    row["facts"].tobytes(),
                )
                for row in rows
            ],
        )
        for entry in entries:
            plane.graph.refer(change, entry.number, entry.links)
        for number in numbers:
            change.after(partial(plane.stubs.pop, number))
        for row in rows:
            change.after(partial(self._back, row))

    def _back(self, row: np.void) -> None:
        row["graph_bytes"] = self._plane.graph.charged_bytes(int(row["number"]))
        self._plane.table.put(row)

    def _uncover(self, change: Transaction, rows: Structured, to: Rung) -> None:
        """An overlay goes when an exact base reaches its rung."""
        reached = (rows["overlay_rung"] != NO_OVERLAY) & (rows["overlay_rung"] >= to)
        part = rows[reached]
        self._mover.uncover(change, part)
        rows[reached] = part


def _row_of(item: ExactText, archived: ArchivedEntry) -> np.void:
    row = blank_row(item.number)
    row["version"] = archived.version
    row["id"] = np.void(archived.public_id)
    row["digest"] = np.void(archived.digest)
    facts = row["facts"]
    facts["created_wall_ns"] = archived.created_wall_ns
    facts["text_bytes"] = len(item.text.encode())
    facts["kind"] = archived.kind
    facts["memory_class"] = archived.memory_class
    facts["levelling"] = archived.levelling
    facts["flags"] = Flag.ARCHIVED
    return row
