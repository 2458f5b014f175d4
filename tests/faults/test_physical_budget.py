"""The physical budget at 20 MB and 100 k entries: bytes leave the file, even in price order."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from edge_agent.entries import EvictionReason, Usage
from edge_agent.store import Store
from edge_agent.sweep import WAL_CHUNK_BYTES, Sweep
from edge_agent.vectors import VECTOR_ROW_BYTES
from shared.memory.model import Rung
from shared.memory.vectors import Signature
from tests.planes import fill, open_store, scattered_pricing

ENTRIES = 100_000
ENTRY_BYTES = 200
MODEL = Signature("model", 384, "mean")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """100 k short entries at FULL: 20 MB of text."""
    directory = tmp_path_factory.mktemp("full") / "memory"
    with closing(open_store(directory)) as store:
        fill(store, ENTRIES, ENTRY_BYTES)
        assert sum(store.table.rows()["facts"]["text_bytes"].tolist()) > 0.97 * ENTRIES * ENTRY_BYTES
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def directory(full_store: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy to squeeze."""
    shutil.copytree(full_store, tmp_path / "memory")
    yield tmp_path / "memory"
    shutil.rmtree(tmp_path / "memory")


def provision(store: Store) -> int:
    """B0 of spec.md 3: `du` less E of a keep-all store of the same entries."""
    usage = store.usage()
    return usage.disk_bytes - usage.empty_bytes


def check_budgets(usage: Usage, budget_bytes: int) -> None:
    """Rules 1 and 2 of spec.md 3."""
    assert usage.logical_bytes <= budget_bytes, "logical"
    assert usage.disk_bytes <= budget_bytes + usage.empty_bytes, "physical"


def test_a_store_that_frees_nothing_fails_the_check(directory: Path) -> None:
    """Bodies shrunk in place, no page given back: the account fits, the file does not."""
    with closing(open_store(directory)) as store:
        budget = provision(store) // 2
        sweep = Sweep(store, lambda: scattered_pricing(store))
        demoted = {
            move.number: Rung.PACKED for move in sweep.plan(budget).moves if move.to is not Rung.EVICTED
        }
        store.apply_moves(demoted)
        store.evict(store.table.numbers().tolist()[::4], EvictionReason.BUDGET, {})
        store.plane.db.query("PRAGMA wal_checkpoint(TRUNCATE)")
        store.set_budget(budget)
        usage = store.usage()
        assert usage.logical_bytes <= budget
        with pytest.raises(AssertionError, match="physical"):
            check_budgets(usage, budget)


def add_vectors(store: Store) -> None:
    """A vector of 384 bits for every entry, as the background makes them: in steps, by number."""
    rng = np.random.default_rng(5)
    while entries := store.vectors.wanting(MODEL, 2000, 10**9):
        made = rng.standard_normal((len(entries), MODEL.width)).astype(np.float32)
        assert store.vectors.keep(MODEL, entries, made) == len(entries)
        store.shrink()


def test_a_vector_costs_what_it_is_charged(directory: Path) -> None:
    """48 bytes of code and 12 of row, on disk as in the account; a shed one leaves the file again."""
    with closing(open_store(directory)) as store:
        disk, logical = store.account.disk_bytes(), store.account.logical_bytes()
        add_vectors(store)
        assert len(store.vectors) == ENTRIES
        each = MODEL.width // 8 + VECTOR_ROW_BYTES
        assert store.account.logical_bytes() - logical == pytest.approx(ENTRIES * each, abs=200)
        assert (store.account.disk_bytes() - disk) / ENTRIES < 1.03 * each
        numbers = store.table.numbers().tolist()
        for start in range(0, ENTRIES, 5000):
            store.vectors.shed(numbers[start : start + 5000])
            store.shrink()
        assert store.account.disk_bytes() - disk < 0.01 * ENTRIES * each


@pytest.mark.parametrize("vectors", [False, True])
def test_both_budgets_hold_down_the_trough(directory: Path, *, vectors: bool) -> None:
    """50, 25 and 10 %, each a partial sweep in price order, which is not storage order."""
    with closing(open_store(directory)) as store:
        if vectors:
            add_vectors(store)
        provided, gone = provision(store), 0
        for percent in (50, 25, 10):
            budget = provided * percent // 100
            scratch = max(store.account.disk_bytes(), budget) + WAL_CHUNK_BYTES
            store.set_budget(budget)
            sweep = Sweep(store, lambda: scattered_pricing(store))
            for _ in sweep.steps():
                assert store.account.disk_bytes() <= scratch
            usage = store.usage()
            check_budgets(usage, budget)
            # Steering may not buy the physical budget with the memory itself.
            assert usage.logical_bytes > 0.75 * budget
            gone += len(sweep.report.evicted)
            assert usage.entries == ENTRIES - gone
            rows = store.table.rows()
            held = rows["number"][rows["vector_bytes"] > 0].tolist()
            assert len(held) == len(store.vectors)
            assert (rows["facts"]["rung"][rows["vector_bytes"] > 0] <= Rung.COMPRESSED).all()
            sample = store.table.numbers().tolist()[::997]
            assert len(dict(store.texts(sample))) == len(sample)
