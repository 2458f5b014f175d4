"""Recalls between any two jobs of a sweep: nothing that has gone is found, and no recall fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from edge_agent.elastic import Elastic, ElasticOptions
from edge_agent.entries import EvictionReason
from edge_agent.parts import Parts
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.valuation import Valuation
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import EvictionMode
from shared.memory.value import ValueMode
from tests.fakes import FakeClock
from tests.planes import fill, open_store


class Watched(WorkerThread):
    """Jobs run where they are asked; `between` is called after each of them."""

    between: Callable[[], None] = staticmethod(lambda: None)

    async def run(self, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        done = job(*args, **kwargs)
        self.between()
        return done


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    store, clock = open_store(tmp_path / "memory"), FakeClock()
    state = State.open(tmp_path / "state")
    thread = Watched("store", Pulse("store", clock))
    valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
    made = Parts(store, Retrieval(store), valuation, state, thread, clock, anyio.Lock())
    yield made
    made.retrieval.close()
    state.close()
    store.close()


def test_a_recall_between_two_chunks_finds_only_what_is_there(parts: Parts) -> None:
    store, retrieval = parts.store, parts.retrieval
    texts = fill(store, 200, 300)
    retrieval.refresh(texts)
    elastic = Elastic(parts, None, ElasticOptions(EvictionMode.LAST_RESORT, None, None, 0.0))
    query = " ".join(next(iter(texts.values())).split()[:6])
    looks: list[int] = []

    def look() -> None:
        assert {hit.number for hit in retrieval.rank(query, 300).hits} <= set(store.table)
        looks.append(len(retrieval.find(query, 10, 4000).hits))

    assert isinstance(parts.thread, Watched)
    parts.thread.between = look
    anyio.run(elastic.set_budget, 12_000, None, None)
    assert len(store) < 200
    assert len(looks) > 3


def test_an_entry_that_the_index_still_names_is_passed_over(parts: Parts) -> None:
    texts = fill(parts.store, 5, 60)
    parts.retrieval.refresh(texts)
    gone, kept = list(texts)[:2]
    parts.store.evict([gone], EvictionReason.BUDGET, {})
    found = parts.retrieval.find(f"{texts[gone]} {texts[kept]}", 5, 4000)
    assert gone not in {hit.entry.number for hit in found.hits}
    assert kept in {hit.entry.number for hit in found.hits}
