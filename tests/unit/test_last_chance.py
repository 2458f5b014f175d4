"""Before something goes for good: its event is on disk, and the hub was given the chance to keep it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.entries import ArchiveMode, EvictedEntry, EvictionReason
from edge_agent.store import Store
from edge_agent.sweep import Sweep
from edge_agent.sweep_report import SweepPhase
from tests.planes import acknowledge_all, fill, flat_pricing, open_store


def test_an_eviction_is_told_before_it_is_committed(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    numbers = list(fill(store, 3, 500))
    told: list[tuple[int, int]] = []

    def witness(gone: list[EvictedEntry]) -> None:
        told.extend((entry.number, _rows_on_disk(tmp_path)) for entry in gone)

    store.witness_evictions(witness)
    store.evict(numbers[:2], EvictionReason.BUDGET, {})
    assert told == [(numbers[0], 3), (numbers[1], 3)]
    store.forget(numbers[2])
    assert len(told) == 2  # what is forgotten leaves no id anywhere
    store.close()


def test_an_eviction_that_cannot_be_told_does_not_happen(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    numbers = list(fill(store, 3, 500))

    def full_disk(_: object) -> None:
        raise OSError("no space left")

    store.witness_evictions(full_disk)
    with pytest.raises(OSError, match="no space"):
        store.evict(numbers, EvictionReason.BUDGET, {})
    assert sorted(number for number, _ in store.texts(numbers)) == numbers
    assert _rows_on_disk(tmp_path) == 3
    store.close()


def test_entries_that_would_be_evicted_are_offered_to_the_hub_first(tmp_path: Path) -> None:
    store = open_store(tmp_path, archive=ArchiveMode.DEMOTED)
    fill(store, 40, 3000)
    acknowledge_all(store)
    store.set_budget(3000)
    phases = _swept(store)
    assert phases[0] is not SweepPhase.EVICT
    assert SweepPhase.GRACE in phases[: phases.index(SweepPhase.EVICT)]
    assert len(store.stubs()) == 40 - len(store)
    store.close()


def test_layers_that_wait_in_the_outbox_are_waited_for(tmp_path: Path) -> None:
    store = open_store(tmp_path, archive=ArchiveMode.DEMOTED)
    numbers = list(fill(store, 40, 3000))
    acknowledge_all(store)
    assert store.link.ship(numbers) == 40
    store.set_budget(20_000)
    assert SweepPhase.GRACE in _swept(store)
    store.close()


def _swept(store: Store) -> list[SweepPhase]:
    """The phases of a sweep whose caller lets the hub take everything when asked for grace."""
    phases = []
    for step in Sweep(store, lambda: flat_pricing(store, archive=True)).steps():
        phases.append(step.phase)
        if step.phase is SweepPhase.GRACE:
            acknowledge_all(store)
    return phases


def _rows_on_disk(directory: Path) -> int:
    """What another connection sees: committed rows only."""
    with closing(sqlite3.connect(f"{(directory / 'store.db').as_uri()}?mode=ro", uri=True)) as other:
        return int(other.execute("SELECT count(*) FROM entry").fetchone()[0])
