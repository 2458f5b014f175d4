"""Idle windows by a fake clock: a recall closes them, and the same situation is not planned twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.drafting import Drafting
from edge_agent.elastic import Elastic, ElasticOptions
from edge_agent.entries import NewEntry
from edge_agent.idle import Idle, IdleTimings
from edge_agent.parts import Parts
from edge_agent.recovery import Recovery, RecoveryLimits
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.valuation import Valuation
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import EvictionMode, Rung
from shared.memory.text_codec import TextCodec
from shared.memory.value import ValueMode
from tests.fakes import FakeClock
from tests.planes import fill, open_store

TIMINGS = IdleTimings(window_s=0.5, patience_s=30.0, pace_s=1.0, stage_max_s=60.0)


class Counted(Recovery):
    """The real one, which also counts its passes and the entries that each was allowed."""

    passes: list[int | None]

    async def rise(self, give_way: Callable[[], bool], most: int | None = None) -> bool:
        self.passes.append(most)
        return await super().rise(give_way, most)


class House:
    """An idle loop over a small store whose hot entries are packed."""

    def __init__(self, parts: Parts, clock: FakeClock) -> None:
        self.parts = parts
        self.clock = clock
        options = ElasticOptions(EvictionMode.LAST_RESORT, None, None, 0.0)
        self.recovery = Counted(
            parts, None, Drafting(parts, None, rho=0.1, strict=True), RecoveryLimits(0.1, float("inf"))
        )
        self.recovery.passes = []
        self.idle = Idle(parts, Elastic(parts, None, options), self.recovery, None, TIMINGS)

    async def seconds(self, count: float) -> None:
        """Let the loop live through so many seconds, a tick at a time; its store jobs really run."""
        for _ in range(round(count * 10)):
            await self.clock.advance(0.1)
            await self.parts.thread.run(int)
            await anyio.wait_all_tasks_blocked()


def _opened(directory: Path, thread: WorkerThread, clock: FakeClock) -> Parts:
    store = open_store(directory / "memory", codec=TextCodec(PlainDistiller()))
    fill(store, 20, 600)
    valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
    return Parts(
        store, Retrieval(store), valuation, State.open(directory / "state"), thread, clock, anyio.Lock()
    )


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock = FakeClock()
    thread = WorkerThread("store", Pulse("store", clock))
    parts = await thread.run(_opened, tmp_path, thread, clock)
    made = House(parts, clock)
    # Not a task group: a fixture's set-up and tear-down are two tasks.
    loop = asyncio.create_task(made.idle.run())
    await anyio.wait_all_tasks_blocked()
    yield made
    loop.cancel()
    await asyncio.wait([loop])
    await thread.run(parts.retrieval.close)
    await thread.run(parts.state.close)
    await thread.run(parts.store.close)
    await thread.aclose()


async def test_an_unchanged_store_is_planned_once(house: House) -> None:
    await house.seconds(5)
    assert house.recovery.passes == [None]
    await house.parts.thread.run(house.parts.store.add, NewEntry("the red valve opens left"))
    await house.seconds(5)
    assert len(house.recovery.passes) == 2


async def test_recalls_keep_the_window_shut_and_patience_moves_one_entry(house: House) -> None:
    house.recovery.passes.clear()
    for _ in range(95):
        house.idle.recalled()
        await house.seconds(0.3)
    assert house.recovery.passes == []
    for _ in range(10):
        house.idle.recalled()
        await house.seconds(0.3)
    assert set(house.recovery.passes) == {1}


async def test_hot_entries_are_unpacked_while_bytes_are_plenty(house: House) -> None:
    store, thread = house.parts.store, house.parts.thread
    hot = int((await thread.run(store.table.numbers))[0])
    await thread.run(store.apply_moves, {hot: Rung.PACKED})
    for _ in range(3):
        await thread.run(store.record_recall, [(hot, 1.0)])
    await thread.run(store.begin_stage, 1.0)
    await house.seconds(3)
    assert (await thread.run(store.read, hot)).rung is Rung.FULL


async def test_a_stage_without_a_budget_event_ends_by_itself(house: House) -> None:
    stage = house.parts.store.meta.stage
    await house.seconds(59)
    assert house.parts.store.meta.stage == stage
    await house.seconds(2)
    assert house.parts.store.meta.stage == stage + 1


async def test_settle_says_what_was_done_since_the_one_before(house: House) -> None:
    store, thread = house.parts.store, house.parts.thread
    hot = int((await thread.run(store.table.numbers))[0])
    await thread.run(store.apply_moves, {hot: Rung.PACKED})
    for _ in range(3):
        await thread.run(store.record_recall, [(hot, 1.0)])
    await thread.run(store.begin_stage, 1.0)
    first = await house.idle.settle(60.0)
    assert (first.state, first.by_source) == ("settled", {"unpack": 1})
    second = await house.idle.settle(60.0)
    assert (second.state, second.promoted, second.tokens) == ("settled", 0, 0)


async def test_what_recalls_put_over_the_budget_is_swept_without_a_window(house: House) -> None:
    store, thread = house.parts.store, house.parts.thread
    numbers = (await thread.run(store.table.numbers)).tolist()
    await thread.run(store.set_budget, round(await thread.run(store.account.logical_bytes)))
    await thread.run(store.budget_met)
    budget = store.meta.budget_bytes
    house.idle.recalled()
    await thread.run(store.record_recall, [(number, 0.25) for number in numbers[:4]])
    assert store.meta.target_pending
    for _ in range(100):
        house.idle.recalled()
        await house.seconds(0.1)
        if not store.meta.target_pending:
            break
    assert house.recovery.passes == []
    assert not store.meta.target_pending
    assert await thread.run(store.account.logical_bytes) <= budget
