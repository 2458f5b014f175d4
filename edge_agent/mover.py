"""Moves entries between rungs: new bodies are written before the old are deleted, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from edge_agent.bodies import ROW_BYTES
from edge_agent.entries import Applied, Moved
from edge_agent.outbox import Op
from edge_agent.plane import Plane, keeps_vector
from edge_agent.reader import Base, Reader
from edge_agent.table import NO_LEVELS, NO_OVERLAY, Flag, Structured, lossy, packed_rows, shown_rungs
from edge_agent.transaction import Transaction
from shared.errors import Code, IntegrityError, PermanentError
from shared.memory.blocks import BlockMember, runs
from shared.memory.codec import digest
from shared.memory.model import Kind, Rung

Rungs = NDArray[np.uint8]


class Mover:
    """Demotes, unpacks, rewrites and evicts."""

    def __init__(self, plane: Plane, reader: Reader) -> None:
        self._plane = plane
        self._reader = reader

    def apply(self, targets: Mapping[int, Rung]) -> Applied:
        """Move live entries to a rung that their base can give; an overlay goes with any such move.

        Runs of one kind and rung become blocks in storage order. Damaged entries stay where they are.
        """
        before = self._plane.table.take(self._plane.table.in_storage_order(targets))
        rungs = np.array([targets[number] for number in before["number"].tolist()], np.uint8)
        self._check(before, rungs)
        bases, damaged = self._bases(before, rungs)
        kept = np.array([number not in damaged for number in before["number"].tolist()], np.bool_)
        before, rungs = before[kept], rungs[kept]
        after = before.copy()
        moving = before["facts"]["rung"] != rungs
        with self._plane.journal.write() as change:
            self.uncover(change, after)
            self.place(change, after, moving, rungs, bases)
            self.leave(change, before[moving])
            self._shed_below(change, after)
            self.save(change, after)
            self._tell_moved(change, before, rungs)
        self._reader.note_damage(damaged)
        return Applied(_moved(before, rungs), (), _lost_exact(before, rungs), tuple(damaged))

    def rewrite(self, numbers: Iterable[int]) -> Applied:
        """Write bodies anew at their rung: full blocks and full pages again."""
        before = self._plane.table.take(self._plane.table.in_storage_order(numbers))
        rungs = before["facts"]["rung"].copy()
        bases, damaged = self._bases(before, None)
        kept = np.array([number not in damaged for number in before["number"].tolist()], np.bool_)
        before, rungs = before[kept], rungs[kept]
        after = before.copy()
        with self._plane.journal.write() as change:
            self.place(change, after, np.ones(len(after), np.bool_), rungs, bases)
            self.leave(change, before)
            self.save(change, after)
        self._reader.note_damage(damaged)
        return Applied(damaged=tuple(damaged))

    def shed(self, numbers: Sequence[int]) -> None:
        """Drop vectors; their entries are found by words from then on."""
        rows = self._plane.table.take(numbers)
        with self._plane.journal.write() as change:
            self._shed(change, rows, rows["vector_bytes"] > 0)
            change.after(partial(self._plane.table.put_many, rows))

    # --- parts of a transaction, shared with restores ----------------------------------------------

    def uncover(self, change: Transaction, rows: Structured) -> None:
        """Drop the overlays of these rows, which are copies that will be saved."""
        covered = rows["overlay_rung"] != NO_OVERLAY
        change.db.executemany(
            "DELETE FROM overlay WHERE number = ?", [(n,) for n in rows["number"][covered].tolist()]
        )
        rows["overlay_rung"] = NO_OVERLAY
        rows["overlay_bytes"] = 0

    def place(
        self,
        change: Transaction,
        rows: Structured,
        moving: NDArray[np.bool_],
        rungs: Rungs,
        bases: Mapping[int, Base],
    ) -> None:
        """Write the bases of the moving rows at their rungs and point the rows at them."""
        groups: dict[tuple[int, int], list[int]] = {}
        for position in np.flatnonzero(moving).tolist():
            key = int(rungs[position]), int(rows[position]["facts"]["kind"])
            groups.setdefault(key, []).append(position)
        for (rung, kind), positions in groups.items():
            if rung == Rung.FULL:
                self._place_texts(change, rows, positions, bases)
            else:
                self._place_blocks(change, rows, positions, Rung(rung), Kind(kind), bases)

    def _shed_below(self, change: Transaction, rows: Structured) -> None:
        """Rows, copies that will be saved, that are now too low to keep a vector."""
        self._shed(change, rows, (rows["vector_bytes"] > 0) & ~keeps_vector(rows["facts"]["rung"]))

    def _shed(self, change: Transaction, rows: Structured, which: NDArray[np.bool_]) -> None:
        self._plane.vectors.drop(change, rows["number"][which].tolist())
        rows["vector_bytes"][which] = 0

    def save(self, change: Transaction, rows: Structured) -> None:
        """Write the facts of rows that are there."""
        change.db.executemany("UPDATE entry SET facts = ? WHERE number = ?", packed_rows(rows, "facts"))
        change.after(partial(self._plane.table.put_many, rows))

    def _place_texts(
        self, change: Transaction, rows: Structured, positions: Sequence[int], bases: Mapping[int, Base]
    ) -> None:
        where = np.array(positions)
        facts = rows["facts"]
        text_bytes = facts["text_bytes"][where].tolist()
        facts["block"][where] = [
            self._plane.bodies.put_text(change, bases[number].text, size)
            for number, size in zip(rows["number"][where].tolist(), text_bytes, strict=True)
        ]
        facts["slot"][where] = 0
        facts["rung"][where] = Rung.FULL
        rows["body_bytes"][where] = [size + ROW_BYTES for size in text_bytes]

    def _place_blocks(
        self,
        change: Transaction,
        rows: Structured,
        positions: Sequence[int],
        rung: Rung,
        kind: Kind,
        bases: Mapping[int, Base],
    ) -> None:
        where = np.array(positions)
        numbers = rows["number"][where].tolist()
        records = [self._record(kind, rung, number, bases[number]) for number in numbers]
        for run in runs([len(record) for record in records]):
            part = where[run]
            members = [BlockMember(*pair) for pair in zip(numbers[run], records[run], strict=True)]
            text_bytes = rows["facts"]["text_bytes"][part].astype(np.int64)
            block_number, block = self._plane.bodies.put_block(
                change, kind, members, int(text_bytes.sum()), coded=self._plane.coded(rung)
            )
            facts = rows["facts"]
            facts["block"][part] = block_number
            facts["slot"][part] = np.arange(len(part))
            rows["body_bytes"][part] = block.body_bytes * text_bytes / block.text_bytes
        if rung.lossy:
            exact = where[~lossy(rows["facts"]["rung"][where])]
            rows["facts"]["levelling"][exact] = self._plane.levellings(rows["number"][exact], kind)
        rows["facts"]["rung"][where] = rung

    def _record(self, kind: Kind, rung: Rung, number: int, base: Base) -> bytes:
        if rung is Rung.PACKED:
            return base.text.encode()
        if base.rung is rung:
            return base.record
        codec, ladder = self._plane.codecs[kind], self._plane.ladder
        if base.rung.lossy:
            return codec.lower(base.record, ladder, rung).record
        return codec.drop(base.text, ladder, rung, self._plane.choices.of(number)).record

    def leave(self, change: Transaction, rows: Structured) -> None:
        """The old bodies of rows that went elsewhere."""
        facts = rows["facts"]
        full = facts["rung"] == Rung.FULL
        packed = facts[~full]
        self._plane.bodies.leave(
            change,
            zip(packed["block"].tolist(), packed["text_bytes"].tolist(), strict=True),
            facts["block"][full].tolist(),
        )

    def _bases(
        self, rows: Structured, rungs: Rungs | None
    ) -> tuple[dict[int, Base], dict[int, IntegrityError]]:
        """Verified bases by number of the rows to be written anew, and what is wrong with the others."""
        wanted = rows if rungs is None else rows[rows["facts"]["rung"] != rungs]
        bases: dict[int, Base] = {}
        damaged: dict[int, IntegrityError] = {}
        numbers = wanted["number"].tolist()
        for position, base in self._reader.bases(wanted):
            if isinstance(base, IntegrityError):
                damaged[numbers[position]] = base
            else:
                bases[numbers[position]] = base
        return bases, damaged

    def _check(self, rows: Structured, rungs: Rungs) -> None:
        """Refuse what no plan of ours asks for, before anything is written."""
        facts = rows["facts"]
        held, down = facts["rung"], lossy(rungs)
        for rung in np.unique(rungs).tolist():
            self._plane.ladder.index(Rung(rung))
        lifted = (rungs < held) & (lossy(held) | down)
        if lifted.any():
            number = int(rows["number"][lifted][0])
            raise PermanentError(Code.INTERNAL, "a lossy base cannot be lifted from itself", number=number)
        for kind in np.unique(facts["kind"][down]).tolist():
            if Kind(kind) not in self._plane.codecs:
                raise PermanentError(Code.INTERNAL, "the kind has no lossy rungs", kind=Kind(kind).name)
            sinking = rows[down & ~lossy(held) & (facts["kind"] == kind)]
            levellings = self._plane.levellings(sinking["number"], Kind(kind))
            foreign = sinking["facts"]["levelling"] != levellings
            for row, levelling in zip(sinking[foreign], levellings[foreign].tolist(), strict=True):
                self.check_levels(row, levelling)

    def base_digest(self, row: np.void) -> bytes:
        """Names the base that a draft is made for."""
        base = self._reader.base(row)
        return digest(base.record or base.text.encode())

    def check_levels(self, row: np.void, levelling: int) -> None:
        """Levels whose layers the hub acknowledged are frozen."""
        held = int(row["facts"]["levelling"])
        if int(row["facts"]["flags"]) & Flag.ARCHIVED and held not in {NO_LEVELS, levelling}:
            raise PermanentError(
                Code.LEVELS_FROZEN,
                "the hub holds this entry's layers under another levelling",
                number=int(row["number"]),
                held=held,
                asked=levelling,
                hint="Keep it exact, or restore it from the hub",
            )

    def _tell_moved(self, change: Transaction, before: Structured, rungs: Rungs) -> None:
        if self._plane.archive is None:
            return
        held = before["facts"]["rung"]
        sunk = (rungs != held) & lossy(rungs)
        shown = ~sunk & ((rungs < held) | (before["overlay_rung"] != NO_OVERLAY))
        for number, version in _names(before[sunk]):
            self._plane.outbox.withdraw(change, number, (Op.LAYERS,))
            self._plane.tell(change, number, Op.RESIDUE, version)
        for number, version in _names(before[shown]):
            self._plane.tell(change, number, Op.STATE, version)


def _names(rows: Structured) -> list[tuple[int, int]]:
    return list(zip(rows["number"].tolist(), rows["version"].tolist(), strict=True))


def _moved(before: Structured, rungs: Rungs) -> tuple[Moved, ...]:
    return tuple(
        Moved(number, Rung(origin), Rung(to))
        for number, origin, to in zip(
            before["number"].tolist(), shown_rungs(before).tolist(), rungs.tolist(), strict=True
        )
    )


def _lost_exact(before: Structured, rungs: Rungs) -> tuple[int, ...]:
    """Exact entries that went to a lossy rung before the hub had their layers."""
    exact = ~lossy(before["facts"]["rung"]) & (before["facts"]["flags"] & Flag.ARCHIVED == 0)
    return tuple(before["number"][exact & lossy(rungs)].tolist())
