"""Every way in which charged bytes grow: within the budget, or a sweep is promised at once and made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from edge_agent.elastic import Elastic, ElasticOptions
from edge_agent.entries import ArchiveMode, NewEntry
from edge_agent.parts import Parts
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.store import Store
from edge_agent.sweep import Sweep
from edge_agent.valuation import Valuation
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.crystallize import aim_bytes
from shared.memory.model import EvictionMode
from shared.memory.value import ValueMode
from shared.messages import Created, Layers
from shared.wire import Ack, decode_batch, next_chain
from tests.fakes import FakeClock
from tests.planes import acknowledge_all, fill, flat_pricing, open_store


class Inline(WorkerThread):
    """Jobs run where they are asked, so that a test may look between any two of them."""

    async def run(self, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return job(*args, **kwargs)


@dataclass
class Edge:
    """A store under the daemon's own sweeps, and a hub that takes what is sealed."""

    store: Store
    elastic: Elastic

    def fits_exactly(self, room_bytes: int = 0) -> None:
        """Put a budget in force that leaves so many bytes."""
        self.store.set_budget(math.ceil(self.store.account.logical_bytes()) + room_bytes)
        self.store.budget_met()
        self.store.shrink()
        assert not self.store.meta.target_pending

    def keep_within(self) -> None:
        """What a start, an idle tick and `settle` do."""
        anyio.run(self.elastic.keep_within)
        assert self.within()

    def within(self) -> bool:
        """The postcondition of READY."""
        store = self.store
        return store.account.logical_bytes() <= store.meta.budget_bytes and not store.meta.target_pending

    def acknowledge(self, body: bytes) -> None:
        batch = decode_batch(body)
        chain = next_chain(self.store.meta.chain, body)
        self.store.link.acked(Ack(self.store.meta.tenant, batch.epoch, batch.last_seq, chain, 1))


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    store, clock = open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED), FakeClock()
    # Half-empty pages are another budget's business (test_physical_budget).
    store.account.disk_bytes = lambda: store.meta.empty_bytes  # type: ignore[method-assign]
    state = State.open(tmp_path / "state")
    thread = Inline("store", Pulse("store", clock))
    valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
    parts = Parts(store, Retrieval(store), valuation, state, thread, clock, anyio.Lock())
    yield Edge(store, Elastic(parts, None, ElasticOptions(EvictionMode.LAST_RESORT, None, None, 0.0)))
    parts.retrieval.close()
    state.close()
    store.close()


def test_layers_are_queued_only_where_they_and_their_batch_have_room(edge: Edge) -> None:
    store, texts = edge.store, fill(edge.store, 60, 400)
    acknowledge_all(store)
    edge.fits_exactly()
    store.link.ship(texts)
    assert edge.within()
    edge.fits_exactly(1_200)
    queued = store.link.ship(texts)
    assert 0 < queued < 60
    assert edge.within()
    while (body := store.link.sealed()) is not None:
        assert edge.within()
        edge.acknowledge(body)
    assert store.link.waiting == 0


def test_a_batch_waits_for_room_and_goes_out_when_a_sweep_has_made_it(edge: Edge) -> None:
    store = edge.store
    fill(store, 60, 400)
    edge.fits_exactly()
    assert store.link.sealed() is None
    assert edge.within()
    assert edge.elastic.short
    edge.keep_within()
    body = store.link.sealed()
    assert body is not None
    assert edge.within()
    assert not edge.elastic.short


@pytest.mark.parametrize("links", [0, 40])
def test_room_for_one_batch_is_not_taken_for_room_for_the_next(edge: Edge, links: int) -> None:
    """The first delta is small; one behind it is larger than a batch under this budget may be."""
    store = edge.store
    fill(store, 12, 300)
    store.add(NewEntry("It cites many. " * 9, references=tuple(range(1, 1 + links))))
    edge.fits_exactly()
    edge.keep_within()
    seen = 0
    for _ in range(40):
        body = store.link.sealed()
        assert edge.within()
        if body is None:
            if not store.link.waiting:
                break
            edge.keep_within()
        else:
            seen += sum(isinstance(delta, Created) for delta in decode_batch(body).deltas)
            edge.acknowledge(body)
    assert store.link.waiting == 0
    assert seen > 0


def test_a_batch_is_cut_by_what_it_really_comes_to(edge: Edge) -> None:
    store = edge.store
    fill(store, 30, 300)
    for room in range(60, 1_500, 37):
        edge.fits_exactly(room)
        body = store.link.sealed()
        assert edge.within()
        if body is not None:
            edge.acknowledge(body)


def test_a_write_is_charged_with_the_row_that_tells_of_it(edge: Edge) -> None:
    store, text = edge.store, "The kettle is on the left shelf. "
    fill(store, 20, 400)
    acknowledge_all(store)
    for room in range(80, 180):
        edge.fits_exactly(room)
        if store.fits(len(text.encode())):
            store.add(NewEntry(text))
            break
    assert len(store) == 21
    assert edge.within()


def test_a_recall_and_its_grade_over_the_budget_promise_a_sweep_that_is_made(edge: Edge) -> None:
    store, texts = edge.store, fill(edge.store, 60, 400)
    acknowledge_all(store)
    numbers = list(texts)
    for start in range(0, 40, 8):
        edge.fits_exactly()
        recall = store.record_recall([(number, 0.125) for number in numbers[start : start + 8]])
        assert store.account.logical_bytes() > store.meta.budget_bytes
        assert store.meta.target_pending
        edge.keep_within()
        edge.fits_exactly(300)
        opened = store.open_recall(recall)
        if opened is not None:
            store.record_outcome(recall, 0.5, dict(opened.hits), 10)
        assert edge.within() or store.meta.target_pending
        edge.keep_within()


@pytest.mark.parametrize("lost", ["fenced", "resync"])
def test_a_new_epoch_over_the_budget_promises_a_sweep_that_a_start_makes(edge: Edge, lost: str) -> None:
    store = edge.store
    fill(store, 60, 400)
    acknowledge_all(store)
    edge.fits_exactly(100)
    getattr(store.link, lost)(7)
    assert store.account.logical_bytes() > store.meta.budget_bytes
    assert store.meta.target_pending
    anyio.run(edge.elastic.resume)
    assert edge.within()


def test_what_comes_in_behind_the_sweep_of_a_start_is_swept_before_ready(edge: Edge) -> None:
    store = edge.store
    fill(store, 60, 400)
    acknowledge_all(store)
    met = store.budget_met

    def met_and_fenced() -> None:
        store.budget_met = met  # type: ignore[method-assign]
        met()
        store.link.resync(7)

    store.set_budget(round(0.3 * store.account.logical_bytes()))
    store.budget_met = met_and_fenced  # type: ignore[method-assign]
    anyio.run(edge.elastic.resume)
    assert store.meta.hub_generation == 7
    assert edge.within()


def test_room_that_comes_by_itself_ends_the_promise(edge: Edge) -> None:
    store = edge.store
    numbers = list(fill(store, 60, 400))
    acknowledge_all(store)
    edge.fits_exactly()
    store.record_recall([(number, 0.25) for number in numbers[:4]])
    assert store.meta.target_pending
    rungs = store.usage().rungs
    for number in numbers[10:20]:
        store.forget(number)
    edge.keep_within()
    assert len(store) == 50
    assert store.usage().rungs.keys() == rungs.keys()


def test_layers_are_shipped_from_a_full_store_once_a_sweep_has_made_room(edge: Edge) -> None:
    store, texts = edge.store, fill(edge.store, 60, 400)
    acknowledge_all(store)
    store.set_budget(round(0.6 * store.account.logical_bytes()))
    edge.keep_within()
    assert store.account.logical_bytes() <= aim_bytes(store.meta.budget_bytes)
    shipped: set[int] = set()
    for _ in range(200):
        if not store.link.ship(texts):
            break
        while (body := store.link.sealed()) is not None:
            assert edge.within()
            shipped |= {delta.number for delta in decode_batch(body).deltas if isinstance(delta, Layers)}
            edge.acknowledge(body)
        if store.link.waiting:
            edge.keep_within()
    assert shipped == set(texts)


def test_a_sweep_that_only_makes_room_never_says_over_budget(edge: Edge) -> None:
    store = edge.store
    fill(store, 60, 400)
    edge.fits_exactly()
    steps = 0
    for _ in Sweep(store, lambda: flat_pricing(store)).steps(headroom_bytes=2_000):
        steps += 1
        assert edge.within()
    assert steps
    assert store.account.room_bytes() >= 2_000
