"""Writes new entries: text rows at FULL, one transaction for however many are given."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from edge_agent.account import Account
from edge_agent.bodies import ROW_BYTES
from edge_agent.entries import NewEntry
from edge_agent.outbox import Op
from edge_agent.plane import ENTRY_ROW_BYTES, Plane
from edge_agent.table import Flag, blank_row
from edge_agent.transaction import Transaction
from shared.errors import Code, InputError, PermanentError
from shared.memory.codec import digest

ID_BYTES = 16
_LAST_NUMBER = 2**32 - 1


class Writer:
    """Texts come checked from the door; ids and sizes are checked here."""

    def __init__(self, plane: Plane, account: Account) -> None:
        self._plane = plane
        self._account = account

    def add(self, entries: Sequence[NewEntry]) -> list[int]:
        """Numbers of the new entries: all of them or, with an error, none."""
        rng = self._plane.rng
        ids = [entry.public_id if entry.public_id is not None else rng.bytes(ID_BYTES) for entry in entries]
        texts = [entry.text.encode() for entry in entries]
        floor = self._account.floor_bytes()
        for public_id, text in zip(ids, texts, strict=True):
            self._check(public_id, text, floor)
        if len(set(ids)) < len(ids):
            raise InputError(Code.DUPLICATE_ID, "an id is given twice")
        with self._plane.journal.write() as change:
            return [self._add(change, *new) for new in zip(entries, ids, texts, strict=True)]

    def check(self, public_id: bytes, text: bytes) -> None:
        """Refuse what `add` would refuse, before room is made for it."""
        self._check(public_id, text, self._account.floor_bytes())

    def _check(self, public_id: bytes, text: bytes, floor_bytes: float) -> None:
        plane, budget = self._plane, self._plane.journal.meta.budget_bytes
        if len(public_id) != ID_BYTES:
            raise InputError(Code.BAD_ID, "an id is 16 bytes", found=len(public_id))
        if plane.table.number_of(public_id) is not None:
            raise InputError(Code.DUPLICATE_ID, "an entry with this id is there already", id=public_id.hex())
        size, room = len(text) + ROW_BYTES + ENTRY_ROW_BYTES, budget - floor_bytes
        if size > room:
            raise InputError(
                Code.ENTRY_OVER_BUDGET,
                "the entry alone is larger than the budget",
                entry_bytes=size,
                room_bytes=max(round(room), 0),
                budget_bytes=budget,
            )

    def _add(self, change: Transaction, entry: NewEntry, public_id: bytes, text: bytes) -> int:
        plane, number = self._plane, change.count("next_number")
        if number > _LAST_NUMBER:
            raise PermanentError(Code.INTERNAL, "the store has used every entry number")
        row = blank_row(number)
        row["id"], row["digest"] = np.void(public_id), np.void(digest(text))
        facts = row["facts"]
        facts["block"] = plane.bodies.put_text(change, entry.text, len(text))
        facts["text_bytes"] = len(text)
        facts["kind"], facts["memory_class"] = entry.kind, entry.memory_class
        given = entry.created_wall_ns
        facts["created_wall_ns"] = given if given is not None else plane.clock.wall_ns()
        facts["created_event"] = change.count("event") + 1
        facts["created_stage"] = change.meta.stage
        facts["flags"] = Flag.CORE if entry.core else 0
        row["body_bytes"] = len(text) + ROW_BYTES
        change.db.execute(
            "INSERT INTO entry (number, id, digest, version, facts) VALUES (?, ?, ?, ?, ?)",
            (number, public_id, row["digest"].tobytes(), 1, facts.tobytes()),
        )
        plane.graph.refer(change, number, entry.references)
        plane.tell(change, number, Op.CREATED, 1)
        change.after(partial(self._added, row))
        return number

    def _added(self, row: np.void) -> None:
        row["graph_bytes"] = self._plane.graph.charged_bytes(int(row["number"]))
        self._plane.table.put(row)
