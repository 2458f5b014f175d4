"""`explain` against what Crystallize then does, and the books that answer for the past."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from edge_agent.distill import PlainDistiller
from edge_agent.entries import ArchiveMode
from edge_agent.explaining import explain
from edge_agent.parts import Parts
from edge_agent.retrieval import Retrieval
from edge_agent.state import State
from edge_agent.sweep import Sweep
from edge_agent.valuation import Valuation
from shared.errors import Code, InputError
from shared.host.service import Pulse
from shared.host.worker import WorkerThread
from shared.memory.model import EvictionMode, Rung
from shared.memory.text_codec import TextCodec
from shared.memory.value import ValueMode
from tests.fakes import FakeClock
from tests.planes import acknowledge_all, fill, open_store


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    clock = FakeClock()
    store = open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED, codec=TextCodec(PlainDistiller()))
    fill(store, 200, 1200)
    state = State.open(tmp_path / "state")
    valuation = Valuation(store, ValueMode.PRODUCT, 0.3)
    thread = WorkerThread("store", Pulse("store", clock))
    yield Parts(store, Retrieval(store), valuation, state, thread, clock, anyio.Lock())
    state.close()
    store.close()


def squeezed(parts: Parts, share: float) -> Sweep:
    store = parts.store
    store.set_budget(round(share * store.account.logical_bytes()))
    sweep = Sweep(store, lambda: parts.valuation.pricing(archive=False))
    parts.state.record_sweep(sweep.run(), store.meta.stage, 0)
    return sweep


def test_the_first_step_told_is_the_one_that_a_squeeze_takes(parts: Parts) -> None:
    number = int(parts.store.table.numbers()[0])
    told = explain(parts, number, link_up=False, mode=EvictionMode.LAST_RESORT)
    assert told.rung == "full"
    assert told.moves[0].to == "packed"
    assert told.moves[0].price == 0.0
    assert [step.price for step in told.moves] == sorted(step.price for step in told.moves)
    squeezed(parts, 0.5)
    after = explain(parts, number, link_up=False, mode=EvictionMode.LAST_RESORT)
    assert after.rung in {"full", "packed"}
    assert "Nothing has to come back" in after.summary


def test_a_lossy_entry_names_the_squeeze_that_took_it_and_the_way_back(parts: Parts) -> None:
    sweep = squeezed(parts, 0.2)
    lossy = next(number for number, move in sweep.report.moves.items() if move.to.lossy)
    told = explain(parts, lossy, link_up=True, mode=EvictionMode.LAST_RESORT)
    swept = parts.state.last_move(lossy)
    assert swept is not None
    assert swept.to is sweep.report.moves[lossy].to
    assert f"squeeze of stage {swept.stage} took it down from full" in told.summary
    assert "only a model's draft" in told.way_back
    assert all(Rung[step.to.upper()] > swept.to for step in told.moves)
    assert lossy in parts.state.lost_exact()


def test_an_archived_entry_comes_back_bit_for_bit_and_may_be_evicted_by_price(parts: Parts) -> None:
    number = int(parts.store.table.numbers()[0])
    parts.store.link.ship([number])
    acknowledge_all(parts.store)
    for _ in range(3):
        parts.store.begin_stage(1.0)
    told = explain(parts, number, link_up=True, mode=EvictionMode.PRICED)
    assert told.archived
    assert told.moves[-1].to == "evicted"


def test_after_a_fence_no_recall_of_the_old_copy_can_be_graded(parts: Parts) -> None:
    store = parts.store
    recall_id = store.record_recall([(int(store.table.numbers()[0]), 1.0)])
    assert store.open_recall(recall_id) is not None
    store.link.resync(2)
    assert store.open_recall(recall_id) is not None
    store.link.fenced(2)
    assert store.open_recall(recall_id) is None
    with pytest.raises(InputError) as caught:
        store.record_outcome(recall_id, 1.0, {}, 0)
    assert caught.value.code is Code.UNKNOWN_RECALL
