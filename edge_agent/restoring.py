"""Exact restores: fetched from the hub's archive, checked by digest, put back a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from edge_agent.entries import ExactText
from edge_agent.parts import Parts, used_bytes
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
class _Fetched:
    exact: ExactText
    version: int
    origin: Rung
    link_bytes: int


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
        fetched: dict[int, _Fetched] = {}
        problems: list[TransientError] = []
        limiter = anyio.CapacityLimiter(_FETCHES)

        async def fetch(number: int, version: int) -> None:
            async with limiter:
                try:
                    fetched[number] = await self._fetch(link, number, version)
                except TransientError as problem:
                    problems.append(problem)
                except CrystalError as problem:
                    self._refuse(number, problem, counts)

        async with anyio.create_task_group() as tasks:
            for number, version in versions.items():
                tasks.start_soon(fetch, number, version)
        # In the plan's order, whatever order the hub answered in: same inputs, same blocks.
        ordered = [fetched[number] for number in versions if number in fetched]
        if ordered:
            await thread.run(self._put_back, ordered, to, counts)
        if problems:
            raise problems[0]

    async def restore(self, number: int, to: Rung, counts: RecoveryCounts) -> None:
        """Bring one entry back now, whatever its price."""
        link, thread = self._link, self._parts.thread
        if link is None or not link.up:
            raise TransientError(
                Code.SOURCE_ABSENT, "no hub answers", number=number, hint="Look at `crystalmem status`"
            )
        version = await thread.run(self._version, number)
        fetched = await self._fetch(link, number, version)
        await thread.run(self._check_room, fetched.exact)
        await thread.run(self._write, [fetched], to)
        counts.rose(Source.ARCHIVE)

    async def _fetch(self, link: Link, number: int, version: int) -> _Fetched:
        entry = await link.fetch(number, version)
        size = sum(len(layer.payload) for layer in entry.layers) + len(entry.original)
        self.fetched_bytes += size
        return await self._parts.thread.run(self._joined, number, entry, size)

    # --- store's thread -----------------------------------------------------------------------------------

    def _joined(self, number: int, entry: ArchivedEntry, size: int) -> _Fetched:
        plane = self._parts.store.plane
        if entry.original:
            text = _decoded(unpack_layer(entry.original), number)
        else:
            text = plane.codecs[Kind(entry.kind)].join(entry.layers, plane.ladder)
        row = plane.table.get(number)
        origin = Rung.EVICTED if row is None else Rung(int(row["facts"]["rung"]))
        exact = ExactText(number, text, entry if row is None else None)
        return _Fetched(exact, entry.version, origin, size)

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

    def _check_room(self, exact: ExactText) -> None:
        store = self._parts.store
        size = len(exact.text.encode())
        free = store.meta.budget_bytes - used_bytes(store)
        if size > free:
            raise PermanentError(
                Code.NOT_RESTORABLE,
                "the budget has no room for it",
                entry_bytes=size,
                free_bytes=max(round(free), 0),
                hint="Raise the budget first",
            )

    def _put_back(self, fetched: Sequence[_Fetched], to: Rung, counts: RecoveryCounts) -> None:
        try:
            self._write(fetched, to)
            counts.rose(Source.ARCHIVE, len(fetched))
        except TransientError:
            raise
        except CrystalError:
            # One of them is wrong and nothing was changed: the others go in one by one.
            for item in fetched:
                self._put_one_back(item, to, counts)

    def _put_one_back(self, item: _Fetched, to: Rung, counts: RecoveryCounts) -> None:
        try:
            self._write([item], to)
            counts.rose(Source.ARCHIVE)
        except TransientError:
            raise
        except CrystalError as problem:
            self._refuse(item.exact.number, problem, counts)

    def _write(self, fetched: Sequence[_Fetched], to: Rung) -> None:
        parts = self._parts
        parts.store.restore_exact([item.exact for item in fetched], to)
        parts.store.shrink()
        parts.retrieval.refresh([item.exact.number for item in fetched])
        meta, now = parts.store.meta, parts.clock.wall_ns()
        parts.state.record_all(
            [
                LedgerRow(
                    tenant=meta.tenant,
                    stage=meta.stage,
                    number=item.exact.number,
                    version=item.version,
                    origin=item.origin,
                    to=to,
                    source=Source.ARCHIVE.value,
                    tokens=0,
                    link_bytes=item.link_bytes,
                    admitted=True,
                    reason="",
                    wall_ns=now,
                )
                for item in fetched
            ]
        )

    def _refuse(self, number: int, problem: CrystalError, counts: RecoveryCounts) -> None:
        self.absent.add(number)
        counts.refused(problem.code.value)


def _decoded(raw: bytes, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise IntegrityError(Code.CORRUPT, "the archive's original is not UTF-8", number=number) from None
