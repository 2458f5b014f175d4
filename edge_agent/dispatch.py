"""The store's side of the link: what sync asks of the outbox, and archive-ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

import numpy as np

from edge_agent.deltas import DeltaBuilder
from edge_agent.entries import ArchiveMode
from edge_agent.link import OutboxState
from edge_agent.outbox import ROW_BYTES, Acknowledged, Op
from edge_agent.plane import Plane
from edge_agent.table import NO_OVERLAY, Flag, Structured, lossy, packed_rows
from edge_agent.transaction import Transaction
from shared.memory.model import Rung
from shared.messages import Ack, Created, Delta, Forgotten, Layers


class Dispatch:
    """Synchronous; whoever wires edge_agent.sync wraps it for the store's thread."""

    def __init__(self, plane: Plane, builder: DeltaBuilder, room_bytes: Callable[[], float]) -> None:
        self._plane = plane
        self._builder = builder
        self._room_bytes = room_bytes

    def state(self) -> OutboxState:
        """Where the edge stands, for the hello."""
        meta = self._plane.journal.meta
        return OutboxState(meta.tenant, meta.epoch, meta.seq, meta.acked_seq, meta.chain, meta.hub_generation)

    @property
    def waiting(self) -> int:
        """Rows that the hub has not acknowledged."""
        return len(self._plane.outbox)

    def reserve_bytes(self) -> float:
        """What sealing the next batch may cost the budget."""
        return self._plane.outbox.reserve_bytes(self._builder.build)

    @property
    def starved(self) -> bool:
        """Whether the next batch waits for room under the budget."""
        return self._plane.outbox.starved

    def sealed(self) -> bytes | None:
        """The batch in flight, the same bytes until acked, else the next; None: nothing waits, or no room."""
        outbox, build = self._plane.outbox, self._builder.build
        body = outbox.seal(build, self._room_bytes())
        if outbox.starved and self._plane.db.shrink():
            # Pages that earlier commits freed still count until they are given back.
            body = outbox.seal(build, self._room_bytes())
        return body

    def acked(self, ack: Ack) -> Acknowledged:
        """A durable ack: rows go, layers that the hub kept become a source. Any other ack does nothing."""
        if not self._plane.outbox.covers(ack):
            return Acknowledged()
        plane = self._plane
        with plane.journal.write() as change:
            deltas = plane.outbox.settle(change, ack.chain, ack.generation)
            kept = [delta for delta in deltas if _archives(delta) and delta.seq not in ack.not_archived]
            archived = self._mark(change, kept)
            buried = [(delta.number,) for delta in deltas if isinstance(delta, Forgotten)]
            change.db.executemany("DELETE FROM tombstone WHERE number = ?", buried)
        return Acknowledged(archived, tuple(delta.number for delta in deltas if delta.seq in ack.forgotten))

    def fenced(self, hub_generation: int) -> None:
        """This store ran from an old copy: new epoch, all live entries told again, no archive claimed.

        Recalls that were open in the old copy may have been graded since: they are void.
        """
        with self._plane.journal.write() as change:
            self._plane.recalls.void(change)
        self._restart(hub_generation)

    def resync(self, hub_generation: int) -> None:
        """The hub lost its tail: as fenced."""
        self._restart(hub_generation)

    def lacking(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Exact entries whose layers the hub may hold and has not acknowledged, waiting ones included."""
        plane = self._plane
        if plane.archive in {None, ArchiveMode.NEVER} or not plane.ladder.lossy:
            return ()
        rows = plane.table.take([number for number in numbers if number in plane.table])
        facts = rows["facts"]
        wanted = ~lossy(facts["rung"]) & (facts["flags"] & (Flag.ARCHIVED | Flag.DAMAGED) == 0)
        return tuple(rows["number"][wanted].tolist())

    def ship(self, numbers: Iterable[int]) -> int:
        """Archive ahead: queue layers of exact entries that the hub lacks, where a batch has room beside."""
        plane = self._plane
        fresh = self.unshipped(numbers)
        flying = len(plane.outbox.in_flight or b"")
        room = self._room_bytes() - max(plane.outbox.batch_bytes() - flying, 0.0)
        fresh = fresh[: int(max(min(room / ROW_BYTES, len(fresh)), 0.0))]
        if fresh:
            with plane.journal.write() as change:
                for number, version in fresh:
                    plane.tell(change, number, Op.LAYERS, version)
        return len(fresh)

    def unshipped(self, numbers: Iterable[int]) -> list[tuple[int, int]]:
        """(number, version) of those that lack layers at the hub and of which none are queued."""
        rows = self._plane.table.take(self.lacking(numbers))
        return [
            (number, version)
            for number, version in zip(rows["number"].tolist(), rows["version"].tolist(), strict=True)
            if not self._plane.outbox.waits(number, Op.LAYERS)
        ]

    def _mark(self, change: Transaction, sources: Iterable[Delta]) -> tuple[int, ...]:
        """Entries whose present version the hub can now give back whole."""
        plane = self._plane
        levels: dict[int, int | None] = {}
        for delta in sources:
            row = plane.table.get(delta.number)
            if row is not None and int(row["version"]) == delta.version:
                levels[delta.number] = delta.levelling if isinstance(delta, Layers) else None
        rows = plane.table.take(levels)
        facts = rows["facts"]
        facts["flags"] |= np.uint8(Flag.ARCHIVED)
        for place, levelling in enumerate(levels.values()):
            if levelling is not None:
                facts["levelling"][place] = levelling
        self._save(change, rows)
        return tuple(levels)

    def _restart(self, generation: int) -> None:
        plane = self._plane
        rows = plane.table.rows()
        rows["facts"]["flags"] &= ~np.uint8(Flag.ARCHIVED)
        with plane.journal.write() as change:
            self._save(change, rows)
            # Forgotten, and the hub may not have heard of it: it still holds the text.
            buried = change.db.query("SELECT number FROM tombstone ORDER BY number")
            again = chain(_everything(rows), ((number, Op.FORGOTTEN, 1) for (number,) in buried))
            plane.outbox.restart(change, generation, plane.rng, again)

    def _save(self, change: Transaction, rows: Structured) -> None:
        change.db.executemany("UPDATE entry SET facts = ? WHERE number = ?", packed_rows(rows, "facts"))
        change.after(partial(self._plane.table.put_many, rows))


def _archives(delta: Delta) -> bool:
    return isinstance(delta, Layers) or (isinstance(delta, Created) and bool(delta.original))


def _everything(rows: Structured) -> Iterator[tuple[int, Op, int]]:
    """What a hub that knows nothing must hear of live entries."""
    for row in rows:
        number, version = int(row["number"]), int(row["version"])
        yield number, Op.CREATED, version
        if Rung(int(row["facts"]["rung"])).lossy:
            yield number, Op.RESIDUE, version
        if int(row["overlay_rung"]) != NO_OVERLAY:
            yield number, Op.STATE, version
