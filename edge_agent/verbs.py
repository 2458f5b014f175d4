"""The verbs of the local door, each scoped to the one tenant of this daemon."""

from __future__ import annotations

from collections import Counter

from edge_agent import answers, requests
from edge_agent.elastic import Elastic
from edge_agent.embedding import Embedding
from edge_agent.entries import NewEntry
from edge_agent.explaining import explain
from edge_agent.graph import reference_bytes
from edge_agent.idle import Idle
from edge_agent.monitor import Monitor
from edge_agent.parts import Parts
from edge_agent.recovery import Recovery
from edge_agent.reporting import Reporting, account, entry_view, hit_view
from edge_agent.requests import checked_text, parse_id
from shared import metrics
from shared.errors import Code, InputError
from shared.memory.model import Rung, SweepPlan
from shared.ports import Admission, IdSource


class Verbs:
    """Async; everything that touches the store runs on its thread, changes one after another."""

    def __init__(
        self,
        parts: Parts,
        monitor: Monitor,
        elastic: Elastic,
        recovery: Recovery,
        idle: Idle,
        reporting: Reporting,
        admission: Admission,
        ids: IdSource,
        embedding: Embedding,
    ) -> None:
        self._parts = parts
        self._monitor = monitor
        self._elastic = elastic
        self._recovery = recovery
        self._idle = idle
        self._reporting = reporting
        self._admission = admission
        self._ids = ids
        self._embedding = embedding
        self._tenant = parts.store.meta.tenant

    def check_tenant(self, name: str) -> None:
        """One daemon, one tenant: any other name is unknown, however similar."""
        if name != self._tenant:
            raise InputError(Code.UNKNOWN_TENANT, "this daemon does not hold that tenant", value=name[:64])

    # --- memory -------------------------------------------------------------------------------------------

    async def remember(self, body: requests.Remember) -> answers.Remembered:
        """Write one entry; a full budget demotes, only an entry that cannot fit at all is refused."""
        text = checked_text(body.text)
        kind = requests.parse_kind(body.kind)
        memory_class = requests.parse_class(body.memory_class, kind)
        public_id = parse_id(body.id) if body.id is not None else self._ids.new_id()
        created = requests.parse_time_ns(body.created) if body.created is not None else None
        decision = self._admission.decide(text, kind)
        async with self._parts.lock:
            references, unresolved = await self._parts.thread.run(self._references, public_id, body.links)
            entry = NewEntry(text, kind, memory_class, references, public_id, created)
            await self._parts.thread.run(self._check_new, public_id, text.encode())
            await self._elastic.make_room(len(text.encode()) + reference_bytes(len(references)))
            number = await self._parts.thread.run(self._write, entry)
        self._idle.wake_link()
        return answers.Remembered(public_id.hex(), number, decision.decision, unresolved)

    async def recall(self, body: requests.Recall) -> answers.Recalled:
        """Hits within k and bytes; `record=False` changes nothing."""
        query = requests.checked_query(body.query)
        started = self._parts.clock.mono_ns()
        recall_id: bytes | None = None
        if body.record:
            self._idle.recalled()
        asked = await self._embedding.query(query)
        if body.record:
            recall_id, found = await self._parts.thread.run(
                self._monitor.recall, query, body.k, body.max_bytes, asked.vector
            )
        else:
            found = await self._parts.thread.run(
                self._parts.retrieval.find, query, body.k, body.max_bytes, asked.vector
            )
        metrics.RECALL_SECONDS.observe((self._parts.clock.mono_ns() - started) / 1e9)
        lacks = {
            asked.missing: bool(asked.missing),
            "vectors_pending": found.pending,
            "not_recorded": body.record and recall_id is None,
        }
        return answers.Recalled(
            recall_id=recall_id.hex() if recall_id is not None else None,
            hits=tuple(hit_view(hit) for hit in found.hits),
            degraded=tuple(what for what, lacking in lacks.items() if lacking),
            shortcut=found.shortcut,
            over_budget=bool(self._parts.store.meta.target_pending),
        )

    async def outcome(self, body: requests.Outcome) -> answers.Graded:
        """Attribute an outcome, once."""
        recall_id = parse_id(body.recall_id)
        g = requests.checked_grade(body.g)
        credited = await self._parts.thread.run(self._monitor.outcome, recall_id, g, body.tokens)
        self._idle.wake_link()
        return answers.Graded(credited.entries, credited.tokens, credited.estimated)

    async def get(self, public_id: bytes) -> answers.EntryView:
        """One entry at its present fidelity."""
        return await self._parts.thread.run(self._get, public_id)

    async def explain(self, public_id: bytes) -> answers.Explained:
        """Why an entry is on its rung."""
        return await self._parts.thread.run(self._explain, public_id)

    # --- budget -------------------------------------------------------------------------------------------

    async def budget(self) -> answers.Account:
        """The byte account."""
        return await self._parts.thread.run(self._account)

    async def set_budget(self, body: requests.SetBudget) -> answers.Budgeted:
        """Put a budget in force and return when the store fits."""
        capability = None if body.capability is None else requests.checked_capability(body.capability)
        budget_bytes = self._budget_bytes(body)
        started = self._parts.clock.mono_ns()
        async with self._parts.lock:
            report = await self._elastic.set_budget(budget_bytes, body.provision_bytes, capability)
            # What the sweep measured when it was done: the link writes again from here on.
            held = await self._parts.thread.run(account, self._parts, report.usage)
        self._idle.wake()
        return answers.Budgeted(
            **{name: getattr(held, name) for name in answers.Account.__struct_fields__},
            moved=len(report.moves),
            evicted_now=len(report.evicted),
            lost_exact=len(report.lost_exact),
            guard_yielded=report.guard_yielded,
            rounds=report.rounds,
            seconds=(self._parts.clock.mono_ns() - started) / 1e9,
        )

    async def plan_budget(self, body: requests.SetBudget) -> answers.DryRun:
        """What a budget would do; nothing changes."""
        budget_bytes = self._budget_bytes(body)
        plan = await self._elastic.plan(budget_bytes)
        floor = await self._parts.thread.run(self._parts.store.account.floor_bytes, budget_bytes)
        return _dry_run(plan, budget_bytes, floor)

    async def settle(self, body: requests.Settle) -> answers.Settled:
        """Return when a cap binds or nothing is left to bring back or to archive."""
        return await self._idle.settle(body.timeout_s)

    async def list_evicted(self, limit: int, cursor: int) -> answers.EvictedPage:
        """Evicted entries, the restorable ones and the others."""
        return await self._parts.thread.run(self._reporting.evicted, limit, cursor)

    async def list_lost(self, limit: int) -> answers.LostPage:
        """Entries that lost exactness for good, unless a model or the writer brings them back."""
        return await self._parts.thread.run(self._reporting.lost, limit)

    async def restore(self, body: requests.Restore) -> answers.Restored:
        """Bring one entry back from the archive now."""
        if (body.id is None) == (body.number is None):
            raise InputError(Code.BAD_REQUEST, "give exactly one of id and number")
        number = (
            body.number
            if body.number is not None
            else await self._parts.thread.run(self._reporting.number_for_restore, parse_id(body.id or ""))
        )
        rung = await self._recovery.restore(number, self._elastic.make_room, self._elastic.end_within)
        public_id = await self._parts.thread.run(self._parts.store.id_of, number)
        return answers.Restored(public_id.hex(), number, rung.name.lower())

    async def status(self) -> answers.Status:
        """The whole daemon."""
        return await self._parts.thread.run(self._reporting.status)

    async def refresh_metrics(self) -> None:
        """Gauges as of now."""
        await self._parts.thread.run(self._reporting.refresh_metrics)

    # --- store's thread -------------------------------------------------------------------------------------

    def _check_new(self, public_id: bytes, text: bytes) -> None:
        self._parts.store.check_new(public_id, text)
        number = self._parts.state.evicted_number(public_id)
        if number is not None and number in self._parts.store.plane.stubs:
            # The hub keeps one entry an id: a new one would replace the archive of the evicted one.
            raise InputError(
                Code.DUPLICATE_ID,
                "an evicted entry with this id can still come back",
                id=public_id.hex(),
                number=number,
                hint="Restore it, or choose another id",
            )

    def _write(self, entry: NewEntry) -> int:
        number = self._parts.store.add(entry)
        self._parts.retrieval.refresh([number])
        self._monitor.wrote(number)
        return number

    def _references(self, public_id: bytes, links: list[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Numbers that are cited, and ids of which nothing live is known here."""
        if len(links) > requests.MAX_LINKS:
            raise InputError(Code.BAD_REQUEST, "too many links", value=len(links), limit=requests.MAX_LINKS)
        cited = {link: parse_id(link) for link in links}
        if public_id in cited.values():
            raise InputError(Code.BAD_REQUEST, "an entry cannot cite itself", id=public_id.hex())
        numbers = {link: self._parts.store.table.number_of(raw) for link, raw in cited.items()}
        return (
            tuple(number for number in numbers.values() if number is not None),
            tuple(link for link, number in numbers.items() if number is None),
        )

    def _get(self, public_id: bytes) -> answers.EntryView:
        store = self._parts.store
        entry = store.read(store.number_of(public_id))
        return entry_view(entry, store)

    def _explain(self, public_id: bytes) -> answers.Explained:
        number = self._parts.store.number_of(public_id)
        return explain(self._parts, number, self._reporting.link_up, self._elastic.mode)

    def _account(self) -> answers.Account:
        return account(self._parts)

    def _budget_bytes(self, body: requests.SetBudget) -> int:
        if (body.bytes is None) == (body.fraction is None):
            raise InputError(
                Code.BAD_BUDGET, "give exactly one of bytes and fraction", hint="For example fraction 0.25"
            )
        if body.bytes is not None:
            return body.bytes
        provision = body.provision_bytes or self._parts.store.meta.provision_bytes
        return round(requests.checked_fraction(body.fraction or 0.0) * provision)


def _dry_run(plan: SweepPlan, budget_bytes: int, floor_bytes: float) -> answers.DryRun:
    kinds = Counter((move.origin, move.to) for move in plan.moves)
    return answers.DryRun(
        feasible=plan.feasible,
        budget_bytes=budget_bytes,
        before_bytes=round(plan.size_before_bytes),
        after_bytes=round(plan.size_after_bytes),
        floor_bytes=round(floor_bytes),
        moved=sum(count for (_, to), count in kinds.items() if to is not Rung.EVICTED),
        evicted=sum(count for (_, to), count in kinds.items() if to is Rung.EVICTED),
        water_level=plan.water_level,
        by_rung=tuple(
            answers.PlannedMoves(origin.name.lower(), to.name.lower(), count)
            for (origin, to), count in sorted(kinds.items())
        ),
    )
