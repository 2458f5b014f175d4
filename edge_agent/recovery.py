"""Recrystallize applied: exact restores, model drafts through the gate, unpacking; never above a cap."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import anyio

from edge_agent.drafting import Drafting
from edge_agent.parts import Parts, used_bytes
from edge_agent.restoring import RecoveryCounts, Restoring
from edge_agent.rising import Sources, recovery_columns
from edge_agent.table import NO_OVERLAY
from shared.errors import TransientError
from shared.memory import recrystallize
from shared.memory.model import Promotion, Rung, Source
from shared.memory.recrystallize import RecoveryCaps
from shared.ports import Link

# One block's worth: an apply is one transaction and becomes one block.
_GROUP = 64


@dataclass(frozen=True)
class RecoveryLimits:
    """rho of Eq. 10; archive bytes a stage may fetch (inf = no limit).

    rises: False under a comparison policy: what a binary store gave up stays given up.
    """

    rho: float
    archive_bytes_per_stage: float
    rises: bool = True


class Recovery:
    """Plans over the whole store and applies the plan in order; gives way between groups."""

    def __init__(self, parts: Parts, link: Link | None, drafting: Drafting, limits: RecoveryLimits) -> None:
        self._parts = parts
        self._link = link
        self._drafting = drafting
        self._restoring = Restoring(parts, link)
        self._limits = limits
        self._stage = 0
        self._counts = RecoveryCounts()
        # Idle windows and settle take turns: a plan of one is stale once the other has moved.
        self._one_pass = anyio.Lock()

    def take_counts(self) -> RecoveryCounts:
        """The counts so far; they start again at zero."""
        taken, self._counts = self._counts, RecoveryCounts()
        return taken

    @property
    def generates(self) -> bool:
        """Whether some model would draft now."""
        return self._drafting.generates

    def forget_absences(self) -> None:
        """The archive may have changed: ask it again for what it did not have."""
        self._restoring.absent.clear()

    async def rise(self, give_way: Callable[[], bool], most: int | None = None) -> bool:
        """One pass over the plan, `most` entries of it; True when something rose. Ends early to give way.

        Nobody waits for the hub with the lock: writes and budgets go on while a fetch or a draft flies.
        """
        if not self._limits.rises:
            return False
        async with self._one_pass:
            plan = (await self._parts.thread.run(self._plan))[:most]
            before = sum(self._counts.promoted.values())
            for group in _groups(plan):
                if give_way() or not await self._parts.thread.run(self._has_room, group):
                    break
                try:
                    await self._apply(group)
                except TransientError:
                    # The link went away or the disk is full: what rose so far stays.
                    break
            return sum(self._counts.promoted.values()) > before

    async def restore(
        self,
        number: int,
        make_room: Callable[[int], Awaitable[None]],
        keep_within: Callable[[], Awaitable[object]],
    ) -> Rung:
        """Bring one entry back from the archive now, whatever its price; the rung that it was put at."""
        ladder, thread = self._parts.store.plane.ladder, self._parts.thread
        to = Rung.PACKED if any(spec.rung is Rung.PACKED for spec in ladder.rungs) else Rung.FULL
        fetched = await self._restoring.fetch_one(number)
        async with self._parts.lock:
            await make_room(await thread.run(self._restoring.size_bytes, fetched, to))
            await thread.run(self._restoring.write, [fetched], to)
            await keep_within()
        self._counts.rose(Source.ARCHIVE)
        return to

    async def _apply(self, group: Sequence[Promotion]) -> None:
        source = group[0].source
        if source is Source.ARCHIVE:
            await self._restoring.lift([step.number for step in group], group[0].to, self._counts)
        elif source is Source.MODEL:
            await self._from_model(group[0])
        else:
            async with self._parts.lock:
                if await self._parts.thread.run(self._has_room, group):
                    await self._parts.thread.run(self._unpack, group)

    async def _from_model(self, promotion: Promotion) -> None:
        outcome = await self._drafting.lift(promotion)
        self._counts.spent(outcome.tokens)
        if outcome.admitted:
            self._counts.rose(Source.MODEL)
        elif outcome.reason:
            self._counts.refused(outcome.reason)

    # --- store's thread -----------------------------------------------------------------------------------

    def _plan(self) -> tuple[Promotion, ...]:
        store = self._parts.store
        if store.meta.stage != self._stage:
            self._stage, self._restoring.fetched_bytes = store.meta.stage, 0
        link = self._link
        sources = Sources(
            archive=link is not None and link.up,
            model=self._drafting.generates,
            backed_off=self._drafting.backed_off(store.meta.stage),
            absent=frozenset(self._restoring.absent),
        )
        pricing = self._parts.valuation.pricing(archive=sources.archive)
        store.estimates.refresh()
        columns = recovery_columns(store.plane, pricing, store.estimates, sources)
        caps = RecoveryCaps(
            budget_bytes=store.account.aim_bytes(),
            used_bytes=used_bytes(store),
            tokens=self._tokens_left(),
            archive_bytes=self._limits.archive_bytes_per_stage - self._restoring.fetched_bytes,
        )
        return recrystallize.plan(columns, store.plane.ladder, caps)

    def _tokens_left(self) -> float:
        meta, state = self._parts.store.meta, self._parts.state
        cap = self._limits.rho * state.serving_tokens(meta.stage - 1)
        return max(cap - state.tokens_spent(meta.tenant, meta.stage), 0.0)

    def _has_room(self, group: Sequence[Promotion]) -> bool:
        """Both caps, asked again: what went before may have cost more than its estimate."""
        if sum(promotion.tokens for promotion in group) > self._tokens_left():
            return False
        growth = sum(max(promotion.growth_bytes, 0.0) for promotion in group)
        store = self._parts.store
        return used_bytes(store) + growth <= store.account.aim_bytes()

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
        self._counts.rose(Source.UNPACK, len(targets))


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
