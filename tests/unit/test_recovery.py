"""Recrystallize in the daemon: nobody waits for the hub with the lock, nothing false comes back."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.drafting import Drafting
from edge_agent.entries import ArchiveMode, EvictionReason
from edge_agent.parts import Parts
from edge_agent.recovery import Recovery, RecoveryLimits
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.store import Store
from edge_agent.valuation import Valuation
from shared.errors import Code, PermanentError, TransientError
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Rung
from shared.memory.text_codec import TextCodec, pack_layer
from shared.memory.value import ValueMode
from shared.ports import ArchivedEntry, Draft, DraftRequest
from tests.fakes import FakeClock
from tests.planes import acknowledge_all, archived_entry, fill, open_store

CODEC = TextCodec(PlainDistiller())


class ScriptedLink:
    """ports.Link whose archive is a dict and whose model says what it was told to."""

    def __init__(self) -> None:
        self.up = True
        self.generates = False
        self.archive: dict[int, ArchivedEntry] = {}
        self.fetched: list[int] = []
        self.drafted: list[DraftRequest] = []
        self.answer = Draft("", "scripted", 100)
        self.gate = anyio.Event()
        self.waiting = anyio.Event()
        self.gate.set()

    async def fetch(self, number: int, version: int) -> ArchivedEntry:
        self.fetched.append(number)
        self.waiting.set()
        await self.gate.wait()
        if number not in self.archive:
            raise PermanentError(Code.SOURCE_ABSENT, "not archived", number=number)
        return self.archive[number]

    async def draft(self, request: DraftRequest) -> Draft:
        self.drafted.append(request)
        self.waiting.set()
        await self.gate.wait()
        return self.answer


class Bench:
    """A store on its thread with everything archived, half of it lossy and a few entries evicted."""

    def __init__(self, parts: Parts, link: ScriptedLink, texts: dict[int, str]) -> None:
        self.parts = parts
        self.link = link
        self.texts = texts
        self.drafting = Drafting(parts, link, rho=0.1, strict=True)
        self.recovery = Recovery(parts, link, self.drafting, RecoveryLimits(0.1, float("inf")))

    async def rise(self) -> bool:
        return await self.recovery.rise(lambda: False)

    async def rungs(self) -> dict[Rung, int]:
        usage = await self.parts.thread.run(self.parts.store.usage)
        return dict(usage.rungs)


def _opened(directory: Path, thread: WorkerThread, clock: FakeClock, link: ScriptedLink) -> Bench:
    store = open_store(directory / "memory", archive=ArchiveMode.DEMOTED, codec=CODEC)
    texts = fill(store, 60, 1200)
    store.link.ship(texts)
    acknowledge_all(store)
    for number in texts:
        entry = store.read(number)
        link.archive[number] = _with_original(archived_entry(entry), entry.text)
    numbers = sorted(texts)
    store.apply_moves(dict.fromkeys(numbers[:30], Rung.SKELETAL))
    store.evict(numbers[30:35], EvictionReason.BUDGET, {})
    parts = Parts(
        store,
        Retrieval(store),
        Valuation(store, ValueMode.PRODUCT, 0.3),
        State.open(directory / "state"),
        thread,
        clock,
        anyio.Lock(),
    )
    return Bench(parts, link, texts)


def _with_original(entry: ArchivedEntry, text: str) -> ArchivedEntry:
    fields = {name: getattr(entry, name) for name in entry.__dataclass_fields__}
    return ArchivedEntry(**(fields | {"original": pack_layer(text.encode())}))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = FakeClock()
    thread = WorkerThread("store", Pulse("store", clock))
    made = await thread.run(_opened, tmp_path, thread, clock, ScriptedLink())
    yield made
    await thread.run(made.parts.retrieval.close)
    await thread.run(made.parts.state.close)
    await thread.run(made.parts.store.close)
    await thread.aclose()


def _shown(store: Store, texts: dict[int, str]) -> int:
    return sum(number in store.table and store.read(number).text == text for number, text in texts.items())


async def test_lossy_and_evicted_entries_come_back_bit_for_bit_and_are_booked(bench: Bench) -> None:
    assert await bench.rise()
    assert await bench.parts.thread.run(_shown, bench.parts.store, bench.texts) == len(bench.texts)
    counts = bench.recovery.take_counts()
    assert counts.promoted == {"archive": 35}
    totals = await bench.parts.thread.run(bench.parts.state.totals, "home")
    assert totals["attempts"] == totals["admitted"] == 35
    assert totals["link_bytes"] > 0
    assert not await bench.rise()


async def test_a_write_goes_on_while_a_fetch_flies(bench: Bench) -> None:
    bench.link.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.rise)
        await bench.link.waiting.wait()
        with anyio.fail_after(5):
            async with bench.parts.lock:
                assert bench.link.fetched
        bench.link.gate.set()
    assert Rung.SKELETAL not in await bench.rungs()


async def test_room_that_went_while_an_original_flew_is_not_taken(bench: Bench) -> None:
    store, thread = bench.parts.store, bench.parts.thread
    bench.link.gate = anyio.Event()
    before = await bench.rungs()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.rise)
        await bench.link.waiting.wait()
        held = await thread.run(store.account.logical_bytes)
        await thread.run(store.set_budget, math.ceil(held))
        bench.link.gate.set()
    assert await bench.rungs() == before
    assert await thread.run(store.account.logical_bytes) <= store.meta.budget_bytes


async def test_a_forged_original_is_refused_and_not_asked_for_again(bench: Bench) -> None:
    forged = min(bench.texts)
    entry = bench.link.archive[forged]
    bench.link.archive[forged] = _with_original(entry, "somebody else's memory")
    await bench.rise()
    counts = bench.recovery.take_counts()
    assert counts.rejected == {"digest_mismatch": 1}
    assert counts.promoted == {"archive": 34}
    store = bench.parts.store
    assert (await bench.parts.thread.run(store.read, forged)).rung is Rung.SKELETAL
    asked = len(bench.link.fetched)
    await bench.rise()
    assert len(bench.link.fetched) == asked
    bench.recovery.forget_absences()
    bench.link.archive[forged] = entry
    assert await bench.rise()


async def test_a_hub_that_goes_away_keeps_what_rose(bench: Bench) -> None:
    async def gone(number: int, version: int) -> ArchivedEntry:
        raise TransientError(Code.HUB_UNAVAILABLE, "gone")

    bench.link.fetch = gone  # type: ignore[method-assign]
    assert not await bench.rise()
    assert (await bench.rungs())[Rung.SKELETAL] == 30


async def test_background_work_gives_way_between_groups(bench: Bench) -> None:
    assert not await bench.recovery.rise(lambda: True)
    assert bench.link.fetched == []
    assert await bench.recovery.rise(lambda: False, most=1)
    assert len(bench.link.fetched) == 1


async def _no_archive(bench: Bench, serving_tokens: int) -> None:
    """A model is the only source, and the stage before served so many tokens."""
    store, thread = bench.parts.store, bench.parts.thread
    await thread.run(store.link.fenced, 2)
    recall_id = await thread.run(store.record_recall, [(min(bench.texts), 1.0)])
    await thread.run(store.record_outcome, recall_id, 1.0, {min(bench.texts): 0.1}, serving_tokens)
    tally = await thread.run(store.begin_stage, 1.0)
    await thread.run(bench.parts.state.end_stage, tally, 1.0, None, 0)
    bench.link.archive.clear()
    assert not await bench.rise()
    bench.recovery.take_counts()
    bench.link.generates = True


async def test_a_rejected_draft_is_charged_backed_off_and_changes_nothing(bench: Bench) -> None:
    await _no_archive(bench, 1_000_000)
    bench.link.answer = Draft("Nothing of the kind ever happened.", "scripted", 100)
    before = await bench.rungs()
    await bench.rise()
    counts = bench.recovery.take_counts()
    assert sum(counts.rejected.values()) == len(bench.link.drafted) > 0
    assert counts.tokens == 100 * len(bench.link.drafted)
    assert counts.promoted == {}
    assert await bench.rungs() == before
    asked = len(bench.link.drafted)
    await bench.rise()
    assert len(bench.link.drafted) == asked


async def test_drafts_stop_at_the_share_of_the_serving_tokens(bench: Bench) -> None:
    await _no_archive(bench, 20_000)
    bench.link.answer = Draft("Nothing of the kind ever happened.", "scripted", 900)
    for _ in range(4):
        await bench.rise()
    assert bench.link.drafted
    assert 900 * len(bench.link.drafted) <= 0.1 * 20_000 + 900


async def test_a_hub_without_a_place_for_drafts_is_left_alone_and_no_entry_pays_for_it(bench: Bench) -> None:
    await _no_archive(bench, 1_000_000)
    clock = bench.parts.clock
    assert isinstance(clock, FakeClock)
    bench.link.answer = Draft("", "", 0, "busy")
    for asked, wait_s in ((1, 5.0), (2, 10.0), (3, 20.0)):
        await bench.rise()
        await bench.rise()
        assert len(bench.link.drafted) == asked
        assert not bench.recovery.generates  # settle has nothing to wait for
        clock.tick(wait_s)
        assert bench.recovery.generates
    assert bench.drafting.backed_off(bench.parts.store.meta.stage) == frozenset()
    bench.link.answer = Draft("Nothing of the kind ever happened.", "scripted", 100)
    await bench.rise()
    assert len(bench.link.drafted) > 4


async def test_a_hub_that_lost_a_draft_on_the_way_is_a_rejection(bench: Bench) -> None:
    await _no_archive(bench, 1_000_000)
    bench.link.answer = Draft("", "scripted", 700, "unreachable")
    await bench.rise()
    backed_off = bench.drafting.backed_off(bench.parts.store.meta.stage)
    assert len(backed_off) == len(bench.link.drafted) > 1
