"""A full or failing disk under the store: nothing lost, nothing half-written, and it goes on afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from edge_agent.entries import ArchiveMode, EvictionReason, NewEntry, Overlay
from edge_agent.store import Store
from edge_agent.sweep import Sweep
from shared.errors import Code, TransientError
from shared.memory.model import Rung
from tests.planes import fill, flat_pricing, open_store, scattered_pricing


@contextmanager
def full_disk(store: Store) -> Iterator[None]:
    """No page more than there is now, as on a full file system."""
    store.shrink()
    pages = store.plane.db.query("PRAGMA page_count")[0][0]
    store.plane.db.query(f"PRAGMA max_page_count = {pages}")
    yield
    store.plane.db.query("PRAGMA max_page_count = 1073741823")


@contextmanager
def read_only_disk(store: Store) -> Iterator[None]:
    """Every write fails, as after an I/O error that remounted the file system."""
    store.plane.db.query("PRAGMA query_only = 1")
    yield
    store.plane.db.query("PRAGMA query_only = 0")


def state_of(store: Store) -> tuple[object, ...]:
    """Everything that a failed call may not change, in memory and on disk."""
    tables = ("entry", "heat", "block", "overlay", "edge", "outbox", "recall", "stub", "meta")
    return (
        store.table.rows().tobytes(),
        vars(store.meta).copy(),
        store.account.logical_bytes(),
        store.link.waiting,
        *(store.plane.db.query(f"SELECT * FROM {table}") for table in tables),
    )


def write_until_full(store: Store) -> None:
    for step in range(400):
        store.add(NewEntry(f"filler {step} " * 10))


def big_overlay(store: Store) -> None:
    number = next(iter(store.table))
    overlay = Overlay(Rung.FULL, "draft " * 30_000, "m", 1)
    store.put_overlay(number, 1, store.read(number).base_digest, overlay)


CALLS: dict[str, Callable[[Store], object]] = {
    "add": lambda store: store.add(NewEntry("long text " * 20_000)),
    "unpack": lambda store: store.apply_moves(dict.fromkeys(list(store.table)[-100:], Rung.FULL)),
    "overlay": big_overlay,
    "ship": lambda store: store.link.ship(list(store.table)),
    "seal": lambda store: store.link.sealed(),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as opened:
        texts = list(fill(opened, 400, 400))
        opened.apply_moves(dict.fromkeys(texts[:100], Rung.TRACE))
        opened.apply_moves(dict.fromkeys(texts[100:], Rung.PACKED))
        yield opened


@pytest.mark.parametrize("name", list(CALLS))
def test_a_full_disk_changes_nothing(store: Store, name: str) -> None:
    before = state_of(store)
    with full_disk(store):
        if name in {"ship", "seal"}:
            # Leave no free slack inside the last pages either.
            with pytest.raises(TransientError):
                write_until_full(store)
            before = state_of(store)
        with pytest.raises(TransientError) as refused:
            CALLS[name](store)
        assert refused.value.code is Code.DISK_FULL
        assert state_of(store) == before
    store.plane.db.integrity_check()
    CALLS[name](store)


@pytest.mark.parametrize("name", [*CALLS, "resync", "evict", "recall", "stage", "budget", "forget"])
def test_a_disk_that_refuses_writes_changes_nothing(store: Store, name: str) -> None:
    calls = CALLS | {
        "resync": lambda store: store.link.resync(2),
        "evict": lambda store: store.evict(list(store.table)[:50], EvictionReason.BUDGET, {}),
        "recall": lambda store: store.record_recall([(number, 0.2) for number in list(store.table)[:5]]),
        "stage": lambda store: store.begin_stage(1.5),
        "budget": lambda store: store.set_budget(1_000_000),
        "forget": lambda store: store.forget(next(iter(store.table))),
    }
    before = state_of(store)
    with read_only_disk(store):
        with pytest.raises(TransientError) as refused:
            calls[name](store)
        assert refused.value.code is Code.DISK_ERROR
        assert state_of(store) == before
    calls[name](store)


def test_a_sweep_stopped_by_a_failing_disk_is_finished_later(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory")) as store:
        texts = fill(store, 3000, 300)
        budget = int(0.5 * store.account.logical_bytes())
        store.set_budget(budget)
        steps = Sweep(store, lambda: scattered_pricing(store)).steps()
        next(steps)
        next(steps)
        before = state_of(store)
        with read_only_disk(store), pytest.raises(TransientError):
            for _ in steps:
                pass
        assert state_of(store) == before
        assert dict(store.texts(texts)) == texts
        for _ in Sweep(store, lambda: scattered_pricing(store)).resume():
            pass
        assert store.usage().holds
        store.plane.db.integrity_check()


def test_a_full_disk_can_still_be_squeezed(tmp_path: Path) -> None:
    """New bodies are written before old ones go: the spare pages of one small chunk are enough."""
    with closing(open_store(tmp_path / "memory")) as store:
        fill(store, 2000, 300)
        store.evict(list(store.table)[::2], EvictionReason.BUDGET, {})
        pages = store.plane.db.query("PRAGMA page_count")[0][0]
        store.plane.db.query(f"PRAGMA max_page_count = {pages}")
        store.set_budget(int(0.5 * store.account.logical_bytes()))
        Sweep(store, lambda: flat_pricing(store)).run()
        assert store.usage().holds
