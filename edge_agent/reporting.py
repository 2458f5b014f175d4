"""Answers about the store: accounts, entries, evictions, status. Belongs to the store's thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edge_agent import answers
from edge_agent.entries import StoredEntry, Usage
from edge_agent.link import LinkStatus
from edge_agent.parts import Parts
from edge_agent.requests import format_time
from edge_agent.retrieval import Shown
from edge_agent.store import Store
from edge_agent.table import Flag
from shared import metrics
from shared.errors import Code, InputError
from shared.memory.model import Kind, MemoryClass, Rung

# Enough for two full cycles; the books hold them all.
_LOOP_POINTS = 20


@dataclass(frozen=True)
class Identity:
    """What the daemon was started as."""

    version: str
    policy: str
    archive_mode: str
    gate: str
    endpoint: str
    board_regenerates: bool


class Reporting:
    """Everything that `status`, `evicted` and the metrics show."""

    def __init__(
        self,
        parts: Parts,
        identity: Identity,
        link_status: Callable[[], LinkStatus | None],
        board: Callable[[], answers.OnDeviceView],
        embedder: Callable[[], answers.EmbedderView],
    ) -> None:
        self._parts = parts
        self._identity = identity
        self._link_status = link_status
        self._board = board
        self._embedder = embedder

    @property
    def link_up(self) -> bool:
        """True while the hub answers."""
        status = self._link_status()
        return status is not None and status.phase in {"ready", "sending"}

    def number_for_restore(self, public_id: bytes) -> int:
        """The local number of a live entry, or of a stub whose eviction is on record."""
        number = self._parts.store.table.number_of(public_id)
        if number is None:
            number = self._parts.state.evicted_number(public_id)
        if number is None:
            raise InputError(Code.UNKNOWN_ID, "no such entry", id=public_id.hex())
        return number

    def evicted(self, limit: int, cursor: int) -> answers.EvictedPage:
        """Evicted entries by number: from the record of evictions, restorable where a stub is left."""
        store, state = self._parts.store, self._parts.state
        stubs = {stub.number: stub for stub in store.stubs(cursor, limit + 1)}
        events = {event.number: event for event in state.evictions(cursor, limit + 1)}
        numbers = sorted(number for number in {*stubs, *events} if number not in store.table)
        page = numbers[:limit]
        rows = []
        for number in page:
            stub, event = stubs.get(number), events.get(number)
            kind = event.kind if event is not None else stub.kind if stub is not None else Kind.MESSAGE
            memory_class = (
                event.memory_class
                if event is not None
                else stub.memory_class
                if stub is not None
                else MemoryClass.NONE
            )
            rows.append(
                answers.EvictedRow(
                    number=number,
                    id=event.public_id.hex() if event is not None else None,
                    kind=kind.name.lower(),
                    memory_class=_class_name(memory_class),
                    value=event.value if event is not None else stub.value if stub is not None else 0.0,
                    reason=event.reason.value if event is not None else "unknown",
                    restorable=stub is not None,
                )
            )
        following = page[-1] if len(numbers) > limit else None
        return answers.EvictedPage(tuple(rows), evicted_count(self._parts), following)

    def lost(self, limit: int) -> answers.LostPage:
        """Entries that a squeeze took below exact before the hub had their layers."""
        numbers, store = self._lost(), self._parts.store
        rows = [
            answers.LostRow(number, store.id_of(number).hex() if number in store.table else None)
            for number in numbers[:limit]
        ]
        return answers.LostPage(tuple(rows), len(numbers))

    def _lost(self) -> list[int]:
        table = self._parts.store.table
        still = []
        for number in sorted(set(self._parts.state.lost_exact())):
            row = table.get(number)
            if row is None or Rung(int(row["facts"]["rung"])).lossy:
                still.append(number)
        return still

    def status(self) -> answers.Status:
        """The whole daemon."""
        store, state, identity = self._parts.store, self._parts.state, self._identity
        held, embedder = account(self._parts), self._embedder()
        tally = store.tally()
        damaged = int((store.table.rows()["facts"]["flags"] & Flag.DAMAGED != 0).sum())
        return answers.Status(
            version=identity.version,
            tenant=store.meta.tenant,
            ladder=store.meta.ladder,
            policy=identity.policy,
            archive_mode=identity.archive_mode,
            gate=identity.gate,
            state="over_budget" if store.meta.target_pending else "serving",
            stage=store.meta.stage,
            budget=held,
            link=self._link_view(),
            sources=self._sources(),
            degraded=_degraded(embedder),
            damaged=damaged,
            serving_tokens=tally.tokens,
            stage_capability=100.0 * tally.outcome_sum / tally.grades if tally.grades else None,
            loop=tuple(
                answers.LoopPointView(point.b, point.capability, point.n, *point.interval)
                for point in state.loop_points()[-_LOOP_POINTS:]
            ),
            lost_exact=len(self._lost()),
            ledger=dict(state.totals(store.meta.tenant)),
            notes=self._notes(held, damaged, embedder),
            ondevice=self._board(),
            embedder=embedder,
        )

    def refresh_metrics(self) -> None:
        """Gauges as of now."""
        usage = self._parts.store.usage()
        for rung in Rung:
            metrics.ENTRIES.labels(rung=metrics.rung_label(rung)).set(usage.rungs.get(rung, 0))
        embedder = self._embedder()
        for state in ("embedded", "pending", "without"):
            metrics.VECTORS.labels(state=state).set(getattr(embedder, state))
        metrics.LOGICAL_BYTES.set(usage.logical_bytes)
        metrics.DISK_BYTES.set(usage.disk_bytes)
        metrics.BUDGET_BYTES.set(usage.budget_bytes)

    def _link_view(self) -> answers.LinkView:
        status, store = self._link_status(), self._parts.store
        if status is None:
            return answers.LinkView("none", "", 0, 0, 0, "")
        problem = f"{status.code}: {status.hint}" if status.code else ""
        return answers.LinkView(
            state=status.phase,
            endpoint=self._identity.endpoint,
            acked_seq=status.acked_seq,
            waiting=store.link.waiting,
            generation=status.hub_generation,
            last_error=problem,
        )

    def _sources(self) -> dict[str, str]:
        status = self._link_status()
        if status is None or not self.link_up:
            why = "no hub is configured" if status is None else f"the link is {status.phase}"
            return {"unpack": "here", "archive": f"absent: {why}", "model": self._board_source(why)}
        archive = "absent: archive.mode is never" if self._identity.archive_mode == "never" else "here"
        model = "here" if status.generates else self._board_source("the hub has no model endpoint")
        return {"unpack": "here", "archive": archive, "model": model}

    def _board_source(self, why_not_the_hub: str) -> str:
        """The board's own model is the last resort."""
        board = self._board()
        if board.available and self._identity.board_regenerates:
            return f"here, on the board ({why_not_the_hub})"
        return f"absent: {why_not_the_hub}"

    def _notes(self, held: answers.Account, damaged: int, embedder: answers.EmbedderView) -> tuple[str, ...]:
        notes = [f"recall is lexical: {embedder.why}"] if embedder.state == "absent" else []
        if damaged:
            notes.append(
                f"{damaged} entries failed their check; `crystalmem restore ID` asks the hub for them"
            )
        if held.over_budget:
            notes.append("a squeeze is being finished")
        return tuple(notes)


def _degraded(embedder: answers.EmbedderView) -> tuple[str, ...]:
    """What every recall goes without, as things are."""
    if embedder.state == "absent":
        return ("no_embedder",)
    return ("vectors_pending",) if embedder.pending else ()


def account(parts: Parts, measured: Usage | None = None) -> answers.Account:
    """The byte account as it is, or as it was when a sweep `measured` it."""
    usage = measured if measured is not None else parts.store.usage()
    return answers.Account(
        stage=parts.store.meta.stage,
        budget_bytes=usage.budget_bytes,
        provision_bytes=usage.provision_bytes,
        logical_bytes=round(usage.logical_bytes),
        shared_bytes=round(usage.shared_bytes),
        disk_bytes=usage.disk_bytes,
        empty_bytes=usage.empty_bytes,
        floor_bytes=round(usage.floor_bytes),
        packed_bytes=round(usage.packed_bytes),
        entries=usage.entries,
        evicted=evicted_count(parts),
        stubs=usage.stubs,
        overlays=usage.overlays,
        rungs={rung.name.lower(): count for rung, count in sorted(usage.rungs.items())},
        over_budget=bool(parts.store.meta.target_pending),
    )


def evicted_count(parts: Parts) -> int:
    """Entries that were written and are not here: numbers given out less those that are live."""
    return parts.store.meta.next_number - 1 - len(parts.store)


def hit_view(hit: Shown) -> answers.Hit:
    """A hit for the door."""
    entry = hit.entry
    return answers.Hit(
        id=entry.public_id.hex(),
        text=hit.text,
        rung=entry.shown_rung.name.lower(),
        provenance=entry.provenance.value,
        model=entry.overlay.model if entry.overlay is not None else "",
        score=hit.score,
        truncated=hit.truncated,
        kind=entry.kind.name.lower(),
        created=format_time(entry.created_wall_ns),
    )


def entry_view(entry: StoredEntry, store: Store) -> answers.EntryView:
    """An entry for the door; links name live entries only."""
    links = [store.id_of(number).hex() for number in entry.references if number in store.table]
    return answers.EntryView(
        id=entry.public_id.hex(),
        number=entry.number,
        text=entry.text,
        rung=entry.rung.name.lower(),
        overlay=entry.overlay.rung.name.lower() if entry.overlay is not None else None,
        provenance=entry.provenance.value,
        model=entry.overlay.model if entry.overlay is not None else "",
        kind=entry.kind.name.lower(),
        memory_class=_class_name(entry.memory_class),
        created=format_time(entry.created_wall_ns),
        version=entry.version,
        links=tuple(links),
        digest=entry.digest.hex(),
        text_bytes=entry.text_bytes,
        size_bytes=round(entry.size_bytes),
        archived=entry.archived,
    )


def _class_name(memory_class: MemoryClass) -> str | None:
    return None if memory_class is MemoryClass.NONE else memory_class.name.lower()
