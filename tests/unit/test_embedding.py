"""Vectors in the daemon: a query never waits for long, an entry's vector comes in the background."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import numpy as np
import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.embedding import Embedding
from edge_agent.entries import NewEntry
from edge_agent.parts import Parts
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.valuation import Valuation
from shared.errors import Code, PermanentError
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import Rung
from shared.memory.text_codec import TextCodec
from shared.memory.value import ValueMode
from shared.memory.vectors import Floats, Signature
from tests.fakes import FakeClock
from tests.planes import fill, open_store

WIDTH = 64
BROKEN = "broken"


class Model:
    """ports.Embedder by the words' letters; cannot take BROKEN, and waits while it is held."""

    signature = Signature("letters", WIDTH, "mean")
    provider = "cpu"

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.batches: list[int] = []

    def passages(self, texts: Sequence[str]) -> Floats:
        self.free.wait(30)
        self.batches.append(len(texts))
        return np.stack([self._vector(text) for text in texts])

    def query(self, text: str) -> Floats:
        self.free.wait(30)
        return self._vector(text)

    def _vector(self, text: str) -> Floats:
        if BROKEN in text:
            raise PermanentError(Code.MODEL_BROKEN, "not finite")
        counted = np.full(WIDTH, 0.01, np.float32)
        for letter in text:
            counted[ord(letter) % WIDTH] += 1
        return np.asarray(counted / np.linalg.norm(counted), np.float32)


class House:
    """A store with an embedder at work."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.model = Model()
        self.embedding = self.with_model(self.model)

    def with_model(self, model: Model | None, timeout_s: float = 30.0) -> Embedding:
        thread = WorkerThread("embedder", Pulse("embedder", self.parts.clock))
        return Embedding(self.parts, thread, model, absence="none here", query_timeout_s=timeout_s)

    async def add(self, *texts: str) -> None:
        run, parts = self.parts.thread.run, self.parts
        numbers = await run(parts.store.add_many, [NewEntry(text) for text in texts])
        await run(parts.retrieval.refresh, numbers)


def _opened(directory: Path, thread: WorkerThread, clock: FakeClock) -> Parts:
    store = open_store(directory / "memory", codec=TextCodec(PlainDistiller()), provision_bytes=400_000)
    valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
    state = State.open(directory / "state")
    return Parts(store, Retrieval(store), valuation, state, thread, clock, anyio.Lock())


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock = FakeClock()
    thread = WorkerThread("store", Pulse("store", clock))
    parts = await thread.run(_opened, tmp_path, thread, clock)
    made = House(parts)
    yield made
    made.model.free.set()
    await made.embedding.aclose()
    for part in (parts.retrieval, parts.state, parts.store):
        await thread.run(part.close)
    await thread.aclose()


def never() -> bool:
    return False


async def test_a_query_has_a_vector_or_says_why_not(house: House) -> None:
    asked = await house.embedding.query("hello")
    assert asked.missing == ""
    assert asked.vector is not None
    assert asked.vector.shape == (WIDTH,)
    assert (await house.embedding.query(BROKEN)).missing == "embedder_failed"
    absent = house.with_model(None)
    asked = await absent.query("hello")
    assert (asked.vector, asked.missing) == (None, "no_embedder")
    assert await absent.fill(never) == 0
    await absent.aclose()


async def test_a_slow_model_costs_a_recall_its_vector_and_nothing_else(house: House) -> None:
    slow = Model()
    slow.free.clear()
    embedding = house.with_model(slow, timeout_s=0.01)
    for _ in range(5):
        assert (await embedding.query("hello")).missing == "embedder_timeout"
    # Behind two that nobody waits for no third is queued.
    assert len(embedding._asked) == 2
    slow.free.set()
    await embedding.aclose()
    assert len(embedding._asked) == 0


async def test_entries_get_vectors_in_small_steps(house: House) -> None:
    await house.add(*(f"entry number {number}" for number in range(30)))
    assert await house.embedding.fill(never) == 30
    assert max(house.model.batches) <= 8
    view = await house.parts.thread.run(house.embedding.view)
    assert (view.state, view.embedded, view.pending, view.failed) == ("ready", 30, 0, 0)
    assert await house.embedding.fill(never) == 0


async def test_a_long_text_is_a_step_of_its_own(house: House) -> None:
    await house.add(*(f"{number} " + "long text " * 400 for number in range(4)))
    await house.embedding.fill(never)
    assert house.model.batches == [1, 1, 1, 1]


async def test_it_gives_way_after_a_step_and_goes_on_later(house: House) -> None:
    await house.add(*(f"entry number {number}" for number in range(30)))
    assert await house.embedding.fill(lambda: len(house.model.batches) >= 2) == 16
    assert await house.embedding.fill(never, most=1) == 1
    assert await house.embedding.fill(never) == 13


async def test_who_waits_goes_first_and_nothing_is_embedded_twice(house: House) -> None:
    await house.add(*(f"entry number {number}" for number in range(60)))
    kept: dict[str, int] = {}

    async def idle() -> None:
        kept["idle"] = await house.embedding.fill(never)

    async def settle() -> None:
        kept["settle"] = await house.embedding.fill(never, awaited=True)

    house.model.free.clear()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(idle)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(settle)
        await anyio.wait_all_tasks_blocked()
        house.model.free.set()
    # The idle one ends its step; whoever waits gets the rest, and is told of all that it did.
    assert kept["idle"] + kept["settle"] == 60
    assert kept["idle"] <= 16
    assert sum(house.model.batches) == 60


async def test_one_bad_text_costs_no_other_its_vector(house: House) -> None:
    await house.add("one", f"this is {BROKEN}", "three", "four")
    assert await house.embedding.fill(never) == 3
    view = await house.parts.thread.run(house.embedding.view)
    assert (view.embedded, view.pending, view.failed) == (3, 1, 1)
    house.model.batches.clear()
    # It is not tried again: idle windows would never end.
    assert await house.embedding.fill(never) == 0
    assert house.model.batches == []


async def test_no_vector_beyond_the_budget(house: House) -> None:
    parts = house.parts
    await parts.thread.run(fill, parts.store, 300, 300)
    await parts.thread.run(parts.store.shrink)
    budget = parts.store.account.disk_bytes() - parts.store.meta.empty_bytes + 6_000
    await parts.thread.run(parts.store.set_budget, budget)
    kept = await house.embedding.fill(never)
    usage = await parts.thread.run(parts.store.usage)
    assert 0 < kept < 300
    assert usage.holds
    assert usage.rungs == {Rung.FULL: 300}
    assert await house.embedding.fill(never) == 0


async def test_pending_entries_are_found_by_words_and_the_recall_says_so(house: House) -> None:
    await house.add("the red door", "a blue window")
    asked = await house.embedding.query("red door")
    parts = house.parts
    found = await parts.thread.run(parts.retrieval.find, "red door", 2, 1000, asked.vector)
    assert found.pending
    assert found.hits[0].text == "the red door"
    await house.embedding.fill(never)
    found = await parts.thread.run(parts.retrieval.find, "red door", 2, 1000, asked.vector)
    assert not found.pending
    assert [hit.text for hit in found.hits] == ["the red door", "a blue window"]
    by_words = await parts.thread.run(parts.retrieval.find, "red door", 2, 1000)
    assert [hit.text for hit in by_words.hits] == ["the red door"]
    assert not by_words.pending
