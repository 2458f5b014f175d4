"""Exact restores: fetched from the hub's archive, checked by digest, put back a block at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import numpy as np

from edge_agent.entries import ExactText
from edge_agent.parts import Parts, used_bytes
from edge_agent.plane import ENTRY_ROW_BYTES
from edge_agent.table import Flag
from shared import metrics
from shared.errors import Code, CrystalError, IntegrityError, PermanentError, TransientError
from shared.memory.model import Kind, Rung, Source
from shared.memory.text_codec import unpack_layer
from shared.ports import ArchivedEntry, LedgerRow, Link

# Fetches in flight; the hub answers them from one thread, so more would only wait there.
_FETCHES = 8


@dataclass
class RecoveryCounts:
    """What recrystallization did since the counts were last taken."""

    promoted: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    tokens: int = 0

    def rose(self, source: Source, count: int = 1) -> None:
        """So many entries were lifted."""
        self.promoted[source.value] += count
        metrics.PROMOTIONS.labels(source=source.value).inc(count)

    def refused(self, reason: str) -> None:
        """A draft or a restore was not admitted."""
        self.rejected[reason] += 1
        metrics.REJECTED_DRAFTS.labels(reason=reason).inc()

    def spent(self, tokens: int) -> None:
        """Model tokens, whatever they bought."""
        self.tokens += tokens
        metrics.REGENERATION_TOKENS.inc(tokens)


@dataclass(frozen=True)
class Fetched:
    """An original as the archive gave it; the store checks its digest before it is written."""

    entry: ArchivedEntry
    text: str
    link_bytes: int

    @property
    def number(self) -> int:
        """The local number."""
        return self.entry.number


class Restoring:
    """The archive as a source. What it turned out not to have is not asked for again until it changes."""

    def __init__(self, parts: Parts, link: Link | None) -> None:
        self.absent: set[int] = set()
        self.fetched_bytes = 0
        self._parts = parts
        self._link = link

    async def lift(self, numbers: Sequence[int], to: Rung, counts: RecoveryCounts) -> None:
        """Restore a group. TransientError where the link or the disk gave out; what came before it stays."""
        link, thread = self._link, self._parts.thread
        if link is None:
            return
        versions = await thread.run(self._versions, numbers)
        fetched: dict[int, Fetched] = {}
        problems: list[TransientError] = []
        limiter = anyio.CapacityLimiter(_FETCHES)

        async def fetch(number: int, version: int) -> None:
            async with limiter:
                try:
                    fetched[number] = await self._fetch(link, number, version)
                except TransientError as problem:
                    problems.append(problem)
                except CrystalError as problem:
                    await thread.run(self._refuse, number, version, problem, counts)

        async with anyio.create_task_group() as tasks:
            for number, version in versions.items():
                tasks.start_soon(fetch, number, version)
        # In the plan's order, whatever order the hub answered in: same inputs, same blocks.
        ordered = [fetched[number] for number in versions if number in fetched]
        async with self._parts.lock:
            await thread.run(self._put_back, ordered, to, counts)
        if problems:
            raise problems[0]

    async def fetch_one(self, number: int) -> Fetched:
        """One entry, whatever its price, read whole; nothing has changed yet."""
        link, thread = self._link, self._parts.thread
        if link is None or not link.up:
            raise TransientError(
                Code.SOURCE_ABSENT, "no hub answers", number=number, hint="Look at `crystalmem status`"
            )
        version = await thread.run(self._version, number)
        return await self._fetch(link, number, version)

    async def _fetch(self, link: Link, number: int, version: int) -> Fetched:
        entry = await link.fetch(number, version)
        size = sum(len(layer.payload) for layer in entry.layers) + len(entry.original)
        self.fetched_bytes += size
        return await self._parts.thread.run(self._joined, entry, size)

    # --- store's thread -----------------------------------------------------------------------------------

    def _joined(self, entry: ArchivedEntry, size: int) -> Fetched:
        plane = self._parts.store.plane
        if entry.original:
            return Fetched(entry, _decoded(unpack_layer(entry.original), entry.number), size)
        text = plane.codecs[Kind(entry.kind)].join(entry.layers, plane.ladder)
        return Fetched(entry, text, size)

    def _versions(self, numbers: Sequence[int]) -> Mapping[int, int]:
        versions = {}
        for number in numbers:
            try:
                versions[number] = self._version(number)
            except PermanentError:
                # It was restored or forgotten since the plan was made.
                continue
        return versions

    def _version(self, number: int) -> int:
        store = self._parts.store
        row = store.table.get(number)
        if row is not None:
            facts = row["facts"]
            if Rung(int(facts["rung"])).lossy or int(facts["flags"]) & Flag.DAMAGED:
                return int(row["version"])
            raise PermanentError(
                Code.NOT_RESTORABLE, "the entry is exact already", number=number, hint="Nothing to do"
            )
        stub = next(iter(store.stubs(number - 1, 1)), None)
        if stub is None or stub.number != number:
            raise PermanentError(
                Code.NOT_RESTORABLE,
                "no such evicted entry, or nothing was kept of it",
                number=number,
                hint="`crystalmem evicted` lists what can come back",
            )
        return stub.version

    def _put_back(self, fetched: Sequence[Fetched], to: Rung, counts: RecoveryCounts) -> None:
        """As many as the budget has room for now: it may have moved while they were fetched."""
        fitting = self._fitting(fetched, to)
        if not fitting:
            return
        try:
            self.write(fitting, to)
            counts.rose(Source.ARCHIVE, len(fitting))
        except TransientError:
            raise
        except CrystalError:
            # One of them is wrong and nothing was changed: the others go in one by one.
            for item in fitting:
                self._put_one_back(item, to, counts)

    def _put_one_back(self, item: Fetched, to: Rung, counts: RecoveryCounts) -> None:
        try:
            self.write([item], to)
            counts.rose(Source.ARCHIVE)
        except TransientError:
            raise
        except CrystalError as problem:
            self._refuse(item.number, item.entry.version, problem, counts)

    def _fitting(self, fetched: Sequence[Fetched], to: Rung) -> list[Fetched]:
        store = self._parts.store
        left = store.account.aim_bytes() - used_bytes(store)
        fitting = []
        for item in fetched:
            left -= self.size_bytes(item, to)
            if left < 0:
                break
            fitting.append(item)
        return fitting

    def size_bytes(self, fetched: Fetched, to: Rung) -> int:
        """What an entry is expected to cost at a rung."""
        ratio = float(self._parts.store.estimates.ratios(np.array([fetched.entry.kind], np.uint8), to)[0])
        return math.ceil(min(ratio, 1.0) * len(fetched.text.encode())) + ENTRY_ROW_BYTES

    def write(self, fetched: Sequence[Fetched], to: Rung) -> None:
        """Put originals at a rung, all checked before any is written. Under the lock."""
        parts = self._parts
        table = parts.store.table
        origins = [_rung_of(table.get(item.number)) for item in fetched]
        parts.store.restore_exact(
            [
                ExactText(item.number, item.text, None if item.number in table else item.entry)
                for item in fetched
            ],
            to,
        )
        parts.store.shrink()
        parts.retrieval.refresh([item.number for item in fetched])
        parts.state.record_all(
            [
                self._row(item.number, item.entry.version, (origin, to), item.link_bytes, "")
                for item, origin in zip(fetched, origins, strict=True)
            ]
        )

    def _refuse(self, number: int, version: int, problem: CrystalError, counts: RecoveryCounts) -> None:
        self.absent.add(number)
        counts.refused(problem.code.value)
        origin = _rung_of(self._parts.store.table.get(number))
        self._parts.state.record(self._row(number, version, (origin, origin), 0, problem.code.value))

    def _row(
        self, number: int, version: int, move: tuple[Rung, Rung], link_bytes: int, reason: str
    ) -> LedgerRow:
        meta = self._parts.store.meta
        return LedgerRow(
            tenant=meta.tenant,
            stage=meta.stage,
            number=number,
            version=version,
            origin=move[0],
            to=move[1],
            source=Source.ARCHIVE.value,
            tokens=0,
            link_bytes=link_bytes,
            admitted=not reason,
            reason=reason,
            wall_ns=self._parts.clock.wall_ns(),
        )


def _rung_of(row: np.void | None) -> Rung:
    return Rung.EVICTED if row is None else Rung(int(row["facts"]["rung"]))


def _decoded(raw: bytes, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise IntegrityError(Code.CORRUPT, "the archive's original is not UTF-8", number=number) from None
