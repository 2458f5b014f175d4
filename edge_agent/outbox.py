"""What the hub has not heard yet: (seq, number, op) rows, and the one sealed batch in flight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import takewhile

from edge_agent.transaction import EPOCH_BYTES, Journal, Transaction
from shared import wire
from shared.errors import Code, IntegrityError
from shared.host.db import Database
from shared.memory.crystallize import aim_bytes
from shared.messages import Ack, Batch, Created, Delta, Layers, Residue
from shared.ports import Rng

# A row of the outbox on disk, measured: seq, number, op, version and the cell around them.
ROW_BYTES = 14
# Of the slack under a budget; writes and recalls need the rest.
_BATCH_SLACK_SHARE = 0.5
# Ids, digest and numbers of a delta, without its payload.
_DELTA_BYTES = 80
# Numbers in a batch's head may be a few bytes longer once the batch before it was acked.
_HEAD_BYTES = 16


class Op(IntEnum):
    """Which delta of spec.md 5 a row becomes, from the entry as it is when the batch is sealed."""

    CREATED = 1
    RESIDUE = 2
    LAYERS = 3
    STATE = 4
    FORGOTTEN = 5


@dataclass(frozen=True)
class Waiting:
    """One row of the outbox."""

    seq: int
    number: int
    op: Op
    version: int


@dataclass(frozen=True)
class Acknowledged:
    """What an ack settled: entries the hub holds every layer of, and entries it knows as forgotten."""

    archived: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()


Build = Callable[[Waiting], "Delta | None"]


class Outbox:
    """Rows commit with the change they tell of; a repeated op on an entry is one row."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self.starved = False
        """Whether the last seal found no room even for one delta."""
        self._db = database
        self._journal = journal
        self._waiting: dict[tuple[int, Op], int] = {}
        self._rows = 0
        self._sent: bytes | None = None
        self._sent_seq = 0
        self._load()

    def __len__(self) -> int:
        return self._rows

    @property
    def in_flight(self) -> bytes | None:
        """The sealed batch that waits for its ack."""
        return self._sent

    def waits(self, number: int, op: Op) -> bool:
        """True while this op of the entry has not been sealed."""
        return (number, op) in self._waiting

    def charged_bytes(self) -> int:
        """What the queue and the batch in flight cost the budget."""
        return ROW_BYTES * self._rows + len(self._sent or b"")

    def reserve_bytes(self, build: Build) -> float:
        """What the next batch may come to beyond the one in flight; one delta alone may pass the share."""
        unsent = [row for row in self._head() if self._sent is None or row.seq > self._sent_seq]
        first = next((delta for row in unsent if (delta := build(row)) is not None), None)
        if first is None:
            return 0.0
        alone = len(self._encoded((first,))) + _HEAD_BYTES
        return max(self.batch_bytes(), alone) - len(self._sent or b"")

    def queue(self, change: Transaction, number: int, op: Op, version: int) -> None:
        """Tell the hub later; a row that already waits says it all."""
        if (number, op) in self._waiting or not change.once((number, op)):
            return
        seq = change.count("seq") + 1
        change.db.execute(
            "INSERT INTO outbox (seq, number, op, version) VALUES (?, ?, ?, ?)", (seq, number, op, version)
        )
        change.after(partial(self._queued, number, op, seq))

    def withdraw(self, change: Transaction, number: int, ops: Iterable[Op]) -> None:
        """Forget what has not been sealed of an entry that goes."""
        gone = {op: self._waiting[number, op] for op in ops if (number, op) in self._waiting}
        if gone:
            change.db.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in gone.values()])
            change.after(lambda: self._withdrawn(number, gone))

    def seal(self, build: Build, room_bytes: float = math.inf) -> bytes | None:
        """The batch in flight; seals the next one from the present rows when none is and there is room."""
        self.starved = False
        while self._sent is None and self._rows:
            rows = self._head()
            deltas, last_seq = _fill(rows, build, min(self.batch_bytes(), room_bytes))
            body = self._encoded(deltas) if deltas else b""
            while len(body) > room_bytes:
                if len(deltas) == 1:
                    self.starved = True
                    return None
                deltas = deltas[: len(deltas) // 2]
                body = self._encoded(deltas)
            with self._journal.write() as change:
                if deltas:
                    change.db.execute(
                        "INSERT INTO sent (last_seq, body) VALUES (?, ?)", (deltas[-1].seq, body)
                    )
                    change.after(partial(self._sealed, body, deltas[-1].seq, rows))
                else:
                    self._delete(change, last_seq)
        return self._sent

    def settle(self, change: Transaction, chain: bytes, generation: int) -> tuple[Delta, ...]:
        """The batch in flight was acked with this chain: its deltas; IntegrityError where chains differ."""
        body = self._sent
        if body is None:
            return ()
        if wire.next_chain(change.meta.chain, body) != chain:
            raise IntegrityError(
                Code.CHAIN_MISMATCH,
                "the hub acknowledged other bytes than were sent",
                hint="Stop both sides and compare their stores; nothing was changed",
            )
        change.change(chain=chain, acked_seq=self._sent_seq, hub_generation=generation)
        change.db.execute("DELETE FROM sent")
        self._delete(change, self._sent_seq)
        change.after(self._settled)
        return wire.decode_batch(body).deltas

    def covers(self, ack: Ack) -> bool:
        """True where the ack is for the batch in flight."""
        return self._sent is not None and (ack.epoch, ack.last_seq) == (
            self._journal.meta.epoch,
            self._sent_seq,
        )

    def restart(
        self, change: Transaction, generation: int, rng: Rng, rows: Iterable[tuple[int, Op, int]]
    ) -> None:
        """A new epoch: what waited or flew is void, (number, op, version) rows are queued instead."""
        change.change(
            epoch=rng.bytes(EPOCH_BYTES), acked_seq=0, chain=wire.NO_CHAIN, hub_generation=generation
        )
        change.db.execute("DELETE FROM sent")
        change.db.execute("DELETE FROM outbox")
        change.db.executemany(
            "INSERT INTO outbox (seq, number, op, version) VALUES (?, ?, ?, ?)",
            ((change.count("seq") + 1, *row) for row in rows),
        )
        change.after(self._load)

    def _load(self) -> None:
        rows = self._db.query("SELECT last_seq, body FROM sent")
        self._sent_seq, self._sent = rows[0] if rows else (0, None)
        held = self._db.query("SELECT seq, number, op FROM outbox ORDER BY seq")
        self._rows = len(held)
        self._waiting = {(number, Op(op)): seq for seq, number, op in held if seq > self._sent_seq}

    def batch_bytes(self) -> float:
        """What is in flight is charged: it may take half of the slack that a sweep leaves, and no more."""
        budget = self._journal.meta.budget_bytes
        return min(wire.BATCH_TARGET_BYTES, _BATCH_SLACK_SHARE * (budget - aim_bytes(budget)))

    def _encoded(self, deltas: tuple[Delta, ...]) -> bytes:
        meta = self._journal.meta
        return wire.encode_batch(Batch(meta.epoch, meta.acked_seq, deltas[-1].seq, deltas))

    def _head(self) -> list[Waiting]:
        return [
            Waiting(seq, number, Op(op), version)
            for seq, number, op, version in self._db.query(
                "SELECT seq, number, op, version FROM outbox ORDER BY seq LIMIT ?",
                (wire.BATCH_TARGET_DELTAS,),
            )
        ]

    def _delete(self, change: Transaction, last_seq: int) -> None:
        gone = change.db.execute("DELETE FROM outbox WHERE seq <= ?", (last_seq,))
        change.after(lambda: self._deleted(last_seq, gone))

    def _queued(self, number: int, op: Op, seq: int) -> None:
        self._waiting[number, op] = seq
        self._rows += 1

    def _withdrawn(self, number: int, gone: dict[Op, int]) -> None:
        for op in gone:
            del self._waiting[number, op]
        self._rows -= len(gone)

    def _sealed(self, body: bytes, last_seq: int, rows: Iterable[Waiting]) -> None:
        self._sent, self._sent_seq = body, last_seq
        for row in rows:
            if row.seq <= last_seq:
                self._waiting.pop((row.number, row.op), None)

    def _settled(self) -> None:
        self._sent, self._sent_seq = None, 0

    def _deleted(self, last_seq: int, gone: int) -> None:
        # Rows wait in the order of their seqs.
        for key in [key for key, _ in takewhile(lambda row: row[1] <= last_seq, self._waiting.items())]:
            del self._waiting[key]
        self._rows -= gone


def _fill(rows: Iterable[Waiting], build: Build, limit_bytes: float) -> tuple[tuple[Delta, ...], int]:
    """Deltas up to the limit (one alone may be larger), and the last seq looked at."""
    deltas: list[Delta] = []
    size = last_seq = 0
    for row in rows:
        delta = build(row)
        if delta is not None:
            size += _weight(delta)
            if deltas and size > limit_bytes:
                break
            deltas.append(delta)
        last_seq = row.seq
    return tuple(deltas), last_seq


def _weight(delta: Delta) -> int:
    """About what a delta adds to a batch."""
    if isinstance(delta, Created):
        payload = len(delta.original) + 5 * len(delta.links)
    elif isinstance(delta, Residue):
        payload = len(delta.payload)
    elif isinstance(delta, Layers):
        payload = sum(len(layer.payload) for layer in delta.layers)
    else:
        payload = 0
    return _DELTA_BYTES + payload
