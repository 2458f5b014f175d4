"""One tenant's memory on disk: entries, recalls, budget and link, in one SQLite file owned by one thread.

Everything under `memory/` is budget. Reads are verified; a change and its outbox row are one transaction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from edge_agent import columns
from edge_agent.account import Account
from edge_agent.bound import Bound
from edge_agent.columns import Pricing
from edge_agent.deltas import DeltaBuilder
from edge_agent.dispatch import Dispatch
from edge_agent.entries import (
    Applied,
    EvictedEntry,
    EvictionReason,
    ExactText,
    Moved,
    NewEntry,
    OpenRecall,
    Overlay,
    StageTally,
    StoredEntry,
    Stub,
    Usage,
)
from edge_agent.estimates import Estimates
from edge_agent.evictor import Evictor
from edge_agent.mover import Mover
from edge_agent.opening import StoreOptions, open_plane
from edge_agent.plane import STUB_BYTES, Plane
from edge_agent.reader import Reader
from edge_agent.restorer import Restorer
from edge_agent.table import STUB, EntryTable
from edge_agent.telemetry import Telemetry
from edge_agent.trainer import Trainer
from edge_agent.transaction import Meta
from edge_agent.vector_keeper import VectorKeeper
from edge_agent.writer import Writer
from shared.errors import Code, InputError, TransientError
from shared.memory.model import Kind, MemoryClass, Rung, SweepColumns
from shared.memory.value import ValueColumns
from shared.ports import Clock, Rng, RungCodec


class Store:
    """The memory plane of one tenant. Every call is synchronous and belongs to the thread that opened it.

    Errors: InputError for what the caller got wrong, IntegrityError for bytes that fail their check (the
    entry is marked damaged), TransientError for the disk. Nothing is half done after any of them.
    """

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._reader = Reader(plane)
        self._mover = Mover(plane, self._reader)
        self._evictor = Evictor(plane, self._mover)
        self._restorer = Restorer(plane, self._mover)
        self._telemetry = Telemetry(plane)
        self.estimates = Estimates(plane, self._reader)
        self.account = Account(plane, self.estimates)
        """Every byte sum; `usage` is all of them at once."""
        self._writer = Writer(plane, self.account)
        self._trainer = Trainer(plane, self._reader)
        self._builder = DeltaBuilder(plane, self._reader)
        self.bound = Bound(plane, self.account)
        """Whether the budget is held after every commit, or only at the end of a sweep."""
        self.link = Dispatch(plane, self._builder, self.bound.room_bytes)
        """The outbox as the link sees it: state, sealed, acked, fenced, resync; and archive-ahead."""
        self.vectors = VectorKeeper(plane, self._reader, self._mover, self.account, self.link)
        """Which entries want a vector, and keeping, shedding and replacing the vectors there are."""

    @classmethod
    def open(
        cls,
        directory: Path,
        options: StoreOptions,
        *,
        codecs: Mapping[Kind, RungCodec],
        clock: Clock,
        rng: Rng,
    ) -> Store:
        """The store in `directory` (the tenant's `memory/`), made where there is none."""
        return cls(open_plane(directory, options, codecs, clock, rng))

    def close(self) -> None:
        """Empty the WAL and close the file."""
        with suppress(TransientError):
            # On a full disk the log stays, as durable as the file.
            self._plane.db.shrink()
        self._plane.db.close()

    # --- facts ------------------------------------------------------------------------------------

    @property
    def plane(self) -> Plane:
        """The parts, for the sweep."""
        return self._plane

    @property
    def meta(self) -> Meta:
        """Tenant, ladder, stage, event, budget, epoch, scale: as of the last commit."""
        return self._plane.journal.meta

    @property
    def table(self) -> EntryTable:
        """The columns in memory; read only."""
        return self._plane.table

    def __len__(self) -> int:
        return len(self._plane.table)

    def number_of(self, public_id: bytes) -> int:
        """The local number of a live entry; InputError(UNKNOWN_ID)."""
        number = self._plane.table.number_of(public_id)
        if number is None:
            raise InputError(Code.UNKNOWN_ID, "no such entry", id=public_id.hex())
        return number

    def id_of(self, number: int) -> bytes:
        """The public id of a live entry; InputError(UNKNOWN_ID)."""
        public_id: bytes = self._plane.row(number)["id"].tobytes()
        return public_id

    # --- entries ----------------------------------------------------------------------------------

    def add(self, entry: NewEntry) -> int:
        """Store a text that the door has checked, at FULL. Refuses a known id and what cannot fit at all."""
        return self._writer.add([entry])[0]

    def add_many(self, entries: Sequence[NewEntry]) -> list[int]:
        """As `add`, in one transaction: all or none."""
        return self._writer.add(entries)

    def check_new(self, public_id: bytes, text: bytes) -> None:
        """Refuse what `add` would refuse, before room is made for it."""
        self._writer.check(public_id, text)

    def read(self, number: int) -> StoredEntry:
        """One entry, verified; IntegrityError(CORRUPT) marks it damaged."""
        return self._reader.entry(number)

    def texts(self, numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
        """(number, text that recall shows) in storage order; damaged entries are left out."""
        return self._reader.texts(list(numbers))

    def forget(self, number: int) -> EvictedEntry:
        """An entry goes for good, with every byte of its text; the hub gets a tombstone."""
        return self._evictor.forget(number)

    # --- recalls and outcomes -----------------------------------------------------------------------

    def record_recall(self, hits: Sequence[tuple[int, float]]) -> bytes:
        """Count a recall on its hits (number, weight of Eq. 8); the id that an outcome names."""
        return self._telemetry.recalled(hits)

    def open_recall(self, recall_id: bytes) -> OpenRecall | None:
        """A recall that may still be graded."""
        return self._plane.recalls.get(recall_id)

    def record_outcome(
        self, recall_id: bytes, outcome: float, influences: Mapping[int, float], tokens: int
    ) -> None:
        """Keep an outcome and what the monitor made of it; closes the recall id."""
        self._telemetry.graded(recall_id, outcome, influences, tokens)

    def outcomes(self) -> tuple[float, ...]:
        """Q of Eq. 8, oldest first."""
        return tuple(np.frombuffer(self.meta.outcomes, "<f2").tolist())

    # --- stages and budget ----------------------------------------------------------------------------

    def tally(self) -> StageTally:
        """What the present stage has seen so far."""
        meta = self.meta
        return StageTally(meta.stage, meta.stage_grades, meta.stage_outcome_sum, meta.stage_tokens)

    def begin_stage(self, scale: float) -> StageTally:
        """End the stage with the scale fitted on it; what it saw."""
        ended = self.tally()
        with self._plane.journal.write() as change:
            change.count("stage")
            change.change(scale=scale, stage_grades=0, stage_outcome_sum=0.0, stage_tokens=0)
        return ended

    def set_budget(self, budget_bytes: int, provision_bytes: int | None = None) -> None:
        """Put a budget in force; `target_pending` until a sweep has met it. Refused below the floor."""
        floor = self.account.floor_bytes(budget_bytes)
        if budget_bytes < floor:
            raise InputError(
                Code.BUDGET_BELOW_FLOOR,
                "the budget is below what the store cannot do without",
                budget_bytes=budget_bytes,
                floor_bytes=round(floor),
                hint="Ask for more, or let the link empty its outbox first",
            )
        with self._plane.journal.write() as change:
            change.change(
                budget_bytes=budget_bytes,
                provision_bytes=provision_bytes or self.meta.provision_bytes,
                target_pending=1,
            )
            self._plane.recalls.fit(change, budget_bytes)

    def begin_sweep(self) -> None:
        """Over the budget: until `budget_met` a mixture is legal and a restart finishes the sweep.

        A sweep that only makes room owes nothing: wherever it ends, the budget holds.
        """
        if not self.meta.target_pending and not self.account.holds():
            with self._plane.journal.write() as change:
                change.change(target_pending=1)

    def budget_met(self) -> None:
        """The sweep is through."""
        with self._plane.journal.write() as change:
            change.change(target_pending=0)

    def usage(self) -> Usage:
        """The whole account, as it is now."""
        return self.account.usage()

    def fits(self, text_bytes: int) -> bool:
        """Whether a text may be written without going over either budget."""
        return self.account.fits(text_bytes)

    # --- decisions and moves --------------------------------------------------------------------------

    def sweep_columns(self, pricing: Pricing) -> SweepColumns:
        """What Crystallize looks at, ascending by number."""
        self.estimates.refresh()
        return columns.sweep_columns(self._plane, pricing, self.estimates)

    def value_columns(self) -> ValueColumns:
        """What Eq. 8 and 9 look at, ascending by number."""
        return columns.value_columns(self._plane)

    def set_values(self, values: Mapping[int, float]) -> None:
        """The latest v by number, told to the hub with the next delta of an entry."""
        self._builder.values = dict(values)

    def apply_moves(self, targets: Mapping[int, Rung]) -> Applied:
        """Move entries in one transaction; an overlay goes with any move, a lossy base only sinks."""
        return self._mover.apply(targets)

    def rewrite(self, numbers: Iterable[int]) -> Applied:
        """Write bodies anew at their rung."""
        return self._mover.rewrite(numbers)

    def evict(
        self, numbers: Sequence[int], reason: EvictionReason, values: Mapping[int, float]
    ) -> tuple[EvictedEntry, ...]:
        """Entries go; a stub stays where the hub has every layer."""
        return self._evictor.evict(numbers, reason, values)

    def witness_evictions(self, witness: Callable[[Sequence[EvictedEntry]], None]) -> None:
        """Tell `witness` of every eviction (not of what is forgotten) before it is committed."""
        self._evictor.witness = witness

    def put_overlay(self, number: int, version: int, base_digest: bytes, overlay: Overlay) -> None:
        """Cover a base with an admitted draft made for exactly that base."""
        self._restorer.cover(number, version, base_digest, overlay)

    def drop_overlay(self, number: int) -> None:
        """Show the base again."""
        self._restorer.uncover(number)

    def restore_exact(self, texts: Sequence[ExactText], to: Rung) -> tuple[Moved, ...]:
        """Put originals from an exact source at `to`, all checked by digest before any is written."""
        return self._restorer.restore(texts, to)

    def stubs(self, after: int = 0, limit: int = 100) -> tuple[Stub, ...]:
        """Evicted entries that can come back, by number."""
        chosen = sorted(number for number in self._plane.stubs if number > after)[:limit]
        return tuple(_stub(number, self._plane.stubs[number]) for number in chosen)

    def drop_stubs(self, size_bytes: float) -> int:
        """Give up stubs, least value first, for so many bytes; how many. The hub keeps the layers."""
        by_value = sorted(
            self.stubs(limit=len(self._plane.stubs)), key=lambda stub: (stub.value, stub.number)
        )
        gone = [stub.number for stub in by_value[: math.ceil(max(size_bytes, 0.0) / STUB_BYTES)]]
        with self._plane.journal.write() as change:
            change.db.executemany("DELETE FROM stub WHERE number = ?", [(number,) for number in gone])
            self._plane.choices.drop(change, gone)
            change.after(lambda: [self._plane.stubs.pop(number) for number in gone])
        return len(gone)

    def consider_dictionary(self, kind: Kind) -> None:
        """Give a kind a dictionary where one pays for itself."""
        verdict = self._trainer.consider(kind)
        if verdict is not None and verdict.adopt:
            self.estimates.forget(kind)

    def retire_dictionaries(self) -> None:
        """Drop those that no block needs."""
        self._trainer.retire()

    def shrink(self) -> bool:
        """Give free pages back to the file system."""
        return self._plane.db.shrink()


def _stub(number: int, held: bytes) -> Stub:
    stub = np.frombuffer(held, STUB)[0]
    return Stub(
        number,
        int(stub["version"]),
        Kind(int(stub["kind"])),
        MemoryClass(int(stub["memory_class"])),
        stub["digest_prefix"].tobytes(),
        float(stub["value"]),
    )
