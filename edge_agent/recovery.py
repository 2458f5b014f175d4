"""Recrystallize applied: exact restores, model drafts through the gate, unpacking; never above a cap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import anyio

from edge_agent.drafting import Drafting
from edge_agent.entries import ExactText
from edge_agent.parts import Parts
from edge_agent.rising import Sources, recovery_columns
from edge_agent.table import NO_OVERLAY
from shared import metrics
from shared.errors import Code, CrystalError, IntegrityError, PermanentError, TransientError
from shared.memory import crystallize, recrystallize
from shared.memory.model import Kind, Promotion, Rung, Source
from shared.memory.recrystallize import RecoveryCaps
from shared.memory.text_codec import unpack_layer
from shared.ports import ArchivedEntry, Link

# One block's worth: an apply is one transaction and becomes one block.
_GROUP = 64
# Fetches in flight; the hub answers them from one thread, so more would only wait there.
_FETCHES = 8


@dataclass
class RecoveryCounts:
    """What recrystallization did since the counts were last taken."""

    promoted: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    tokens: int = 0


@dataclass(frozen=True)
class RecoveryLimits:
    """rho of Eq. 10; archive bytes a stage may fetch (inf = no limit)."""

    rho: float
    archive_bytes_per_stage: float


class Recovery:
    """Plans over the whole store and applies the plan in order; gives way between groups."""

    def __init__(self, parts: Parts, link: Link | None, drafting: Drafting, limits: RecoveryLimits) -> None:
        self._parts = parts
        self._link = link
        self._drafting = drafting
        self._limits = limits
        self._absent: set[int] = set()
        self._fetched_bytes = 0
        self._stage = 0
        self.counts = RecoveryCounts()

    def take_counts(self) -> RecoveryCounts:
        """The counts so far; they start again at zero."""
        taken, self.counts = self.counts, RecoveryCounts()
        return taken

    def forget_absences(self) -> None:
        """The archive changed: ask it again for what it did not have."""
        self._absent.clear()

    async def rise(self, give_way: Callable[[], bool], most: int | None = None) -> bool:
        """One pass over the plan, `most` entries of it; True when something rose. Ends early to give way."""
        plan = (await self._parts.thread.run(self._plan))[:most]
        rose = False
        for group in _groups(plan):
            if give_way() or not await self._parts.thread.run(self._has_room, group):
                break
            before = sum(self.counts.promoted.values())
            try:
                await self._apply(group)
            except TransientError:
                # The link went away or the disk is full: what rose so far stays.
                break
            rose = rose or sum(self.counts.promoted.values()) > before
        return rose

    async def restore(self, number: int) -> Rung:
        """Bring one entry back from the archive now, whatever its price; where it is then."""
        store, ladder = self._parts.store, self._parts.store.plane.ladder
        to = Rung.PACKED if any(spec.rung is Rung.PACKED for spec in ladder.rungs) else Rung.FULL
        if self._link is None or not self._link.up:
            raise TransientError(
                Code.SOURCE_ABSENT, "no hub answers", number=number, hint="Look at `crystalmem status`"
            )
        version = await self._parts.thread.run(self._version, number)
        exact = await self._fetch(self._link, number, version)
        await self._parts.thread.run(self._check_room, exact)
        await self._parts.thread.run(store.restore_exact, [exact], to)
        self._count(Source.ARCHIVE, 1)
        await self._parts.thread.run(self._parts.retrieval.refresh, [number])
        return to

    # --- planning (store's thread) ----------------------------------------------------------------------

    def _plan(self) -> tuple[Promotion, ...]:
        store = self._parts.store
        if store.meta.stage != self._stage:
            self._stage, self._fetched_bytes = store.meta.stage, 0
        link = self._link
        sources = Sources(
            archive=link is not None and link.up,
            model=link is not None and link.generates,
            backed_off=self._drafting.backed_off(store.meta.stage),
            absent=frozenset(self._absent),
        )
        pricing = self._parts.valuation.pricing(archive=sources.archive)
        store.estimates.refresh()
        columns = recovery_columns(store.plane, pricing, store.estimates, sources)
        caps = RecoveryCaps(
            budget_bytes=crystallize.aim_bytes(store.meta.budget_bytes),
            used_bytes=self._used_bytes(),
            tokens=self._tokens_left(),
            archive_bytes=self._limits.archive_bytes_per_stage - self._fetched_bytes,
        )
        return recrystallize.plan(columns, store.plane.ladder, caps)

    def _tokens_left(self) -> float:
        meta, state = self._parts.store.meta, self._parts.state
        cap = self._limits.rho * state.serving_tokens(meta.stage - 1)
        return max(cap - state.tokens_spent(meta.tenant, meta.stage), 0.0)

    def _used_bytes(self) -> float:
        """The larger of both accounts: neither may pass the budget."""
        store = self._parts.store
        return max(store.account.logical_bytes(), float(store.account.disk_bytes() - store.meta.empty_bytes))

    def _has_room(self, group: Sequence[Promotion]) -> bool:
        growth = sum(max(promotion.growth_bytes, 0.0) for promotion in group)
        return self._used_bytes() + growth <= crystallize.aim_bytes(self._parts.store.meta.budget_bytes)

    def _version(self, number: int) -> int:
        store = self._parts.store
        row = store.table.get(number)
        if row is not None:
            if not Rung(int(row["facts"]["rung"])).lossy:
                raise PermanentError(
                    Code.NOT_RESTORABLE, "the entry is exact already", number=number, hint="Nothing to do"
                )
            return int(row["version"])
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
        if self._used_bytes() + size > store.meta.budget_bytes:
            raise PermanentError(
                Code.NOT_RESTORABLE,
                "the budget has no room for it",
                entry_bytes=size,
                free_bytes=max(round(store.meta.budget_bytes - self._used_bytes()), 0),
                hint="Raise the budget first",
            )

    # --- applying ---------------------------------------------------------------------------------------

    async def _apply(self, group: Sequence[Promotion]) -> None:
        source = group[0].source
        if source is Source.ARCHIVE:
            await self._from_archive(group)
        elif source is Source.MODEL:
            await self._from_model(group[0])
        else:
            await self._parts.thread.run(self._unpack, group)

    def _unpack(self, group: Sequence[Promotion]) -> None:
        store = self._parts.store
        targets = {
            promotion.number: promotion.to
            for promotion in group
            if _stands(store.table.get(promotion.number), promotion)
        }
        if targets:
            store.apply_moves(targets)
            store.shrink()
        self._count(Source.UNPACK, len(targets))

    async def _from_model(self, promotion: Promotion) -> None:
        outcome = await self._drafting.lift(promotion)
        self.counts.tokens += outcome.tokens
        metrics.REGENERATION_TOKENS.inc(outcome.tokens)
        if outcome.admitted:
            self._count(Source.MODEL, 1)
        elif outcome.reason:
            self._rejected(outcome.reason)

    async def _from_archive(self, group: Sequence[Promotion]) -> None:
        link = self._link
        if link is None:
            return
        versions = await self._parts.thread.run(self._versions, group)
        fetched: dict[int, ExactText] = {}
        limiter = anyio.CapacityLimiter(_FETCHES)
        problems: list[TransientError] = []

        async def fetch(number: int, version: int) -> None:
            async with limiter:
                try:
                    fetched[number] = await self._fetch(link, number, version)
                except TransientError as problem:
                    problems.append(problem)
                except CrystalError as problem:
                    self._reject(number, problem)

        async with anyio.create_task_group() as tasks:
            for number, version in versions.items():
                tasks.start_soon(fetch, number, version)
        ordered = [fetched[number] for number in versions if number in fetched]
        if ordered:
            await self._parts.thread.run(self._put_back, ordered, group[0].to)
        if problems:
            raise problems[0]

    async def _fetch(self, link: Link, number: int, version: int) -> ExactText:
        entry = await link.fetch(number, version)
        exact = await self._parts.thread.run(self._joined, number, entry)
        self._fetched_bytes += sum(len(layer.payload) for layer in entry.layers) + len(entry.original)
        return exact

    def _joined(self, number: int, entry: ArchivedEntry) -> ExactText:
        plane = self._parts.store.plane
        if entry.original:
            text = _decoded(unpack_layer(entry.original), number)
        else:
            text = plane.codecs[Kind(entry.kind)].join(entry.layers, plane.ladder)
        return ExactText(number, text, None if number in plane.table else entry)

    def _versions(self, group: Sequence[Promotion]) -> dict[int, int]:
        versions = {}
        for promotion in group:
            try:
                versions[promotion.number] = self._version(promotion.number)
            except PermanentError:
                # It was restored or forgotten since the plan was made.
                continue
        return versions

    def _put_back(self, exact: Sequence[ExactText], to: Rung) -> None:
        store = self._parts.store
        try:
            store.restore_exact(exact, to)
            back = list(exact)
        except TransientError:
            raise
        except CrystalError:
            # One of them is wrong and nothing was changed: the others go in one by one.
            back = [item for item in exact if self._put_one_back(item, to)]
        store.shrink()
        self._parts.retrieval.refresh([item.number for item in back])
        self._count(Source.ARCHIVE, len(back))

    def _put_one_back(self, item: ExactText, to: Rung) -> bool:
        try:
            self._parts.store.restore_exact([item], to)
        except TransientError:
            raise
        except CrystalError as problem:
            self._reject(item.number, problem)
            return False
        return True

    def _reject(self, number: int, problem: CrystalError) -> None:
        self._absent.add(number)
        self._rejected(problem.code.value)

    def _rejected(self, reason: str) -> None:
        self.counts.rejected[reason] += 1
        metrics.REJECTED_DRAFTS.labels(reason=reason).inc()

    def _count(self, source: Source, count: int) -> None:
        self.counts.promoted[source.value] += count
        metrics.PROMOTIONS.labels(source=source.value).inc(count)


def _groups(plan: Sequence[Promotion]) -> Iterator[list[Promotion]]:
    """Runs of one source and target in plan order, a block at a time; drafts one by one."""
    for (source, _), run in groupby(plan, key=lambda promotion: (promotion.source, promotion.to)):
        rest = list(run)
        size = 1 if source is Source.MODEL else _GROUP
        for start in range(0, len(rest), size):
            yield rest[start : start + size]


def _stands(row: object, promotion: Promotion) -> bool:
    """Whether an entry is still where the plan found it."""
    if row is None:
        return False
    facts = row["facts"]  # type: ignore[index]
    return bool(int(facts["rung"]) == promotion.origin and int(row["overlay_rung"]) == NO_OVERLAY)  # type: ignore[index]


def _decoded(raw: bytes, number: int) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise IntegrityError(Code.CORRUPT, "the archive's original is not UTF-8", number=number) from None
