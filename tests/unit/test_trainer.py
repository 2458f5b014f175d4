"""edge_agent.trainer and edge_agent.dictionaries: adopted where they pay, charged, retired, needed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.entries import EvictionReason, NewEntry
from edge_agent.store import Store
from edge_agent.sweep import Sweep
from edge_agent.trainer import DICTIONARY_BYTES
from shared.errors import Code, IntegrityError
from shared.memory.model import Kind, Rung
from tests.planes import open_store, scattered_pricing

_RNG = random.Random(11)
_PHRASES = ["".join(_RNG.choices("abcdefghijklmnopqrstuvwxyz ", k=40)) for _ in range(300)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "memory")) as opened:
        yield opened


def fill_phrases(store: Store, count: int, kind: Kind = Kind.MEMORY) -> dict[int, str]:
    """Texts from a stock of phrases that is larger than a block: what a dictionary is for."""
    rng = random.Random(5)
    texts = [" ".join(rng.choices(_PHRASES, k=6)) for _ in range(count)]
    return dict(zip(store.add_many([NewEntry(text, kind) for text in texts]), texts, strict=True))


def test_a_dictionary_is_adopted_where_it_pays_and_is_charged(store: Store) -> None:
    texts = fill_phrases(store, 2000)
    store.consider_dictionary(Kind.MEMORY)
    assert store.plane.dictionaries.current(Kind.MEMORY) is not None
    assert store.usage().shared_bytes >= DICTIONARY_BYTES
    assert store.usage().floor_bytes >= DICTIONARY_BYTES
    store.apply_moves(dict.fromkeys(texts, Rung.PACKED))
    assert dict(store.texts(texts)) == texts
    (used,) = store.plane.bodies.dictionaries_in_use()
    assert used == 1


def test_packed_with_its_dictionary_a_store_is_smaller_all_told(tmp_path: Path) -> None:
    sizes = []
    for trained in (False, True):
        with closing(open_store(tmp_path / str(trained))) as store:
            texts = fill_phrases(store, 2000)
            if trained:
                store.consider_dictionary(Kind.MEMORY)
            store.apply_moves(dict.fromkeys(texts, Rung.PACKED))
            sizes.append(store.account.logical_bytes())
    assert sizes[1] < sizes[0] - 0.1 * DICTIONARY_BYTES


@pytest.mark.parametrize(
    ("count", "kind", "budget"), [(99, Kind.MEMORY, 1 << 28), (2000, Kind.EPISODE, 1 << 28)]
)
def test_too_little_text_of_a_kind_trains_nothing(store: Store, count: int, kind: Kind, budget: int) -> None:
    fill_phrases(store, count)
    store.set_budget(budget)
    store.consider_dictionary(kind)
    assert not store.plane.dictionaries.held


def test_text_without_repetition_gets_no_dictionary(store: Store) -> None:
    rng = random.Random(4)
    noise = [rng.randbytes(600).hex() for _ in range(300)]
    store.add_many([NewEntry(text) for text in noise])
    store.consider_dictionary(Kind.MEMORY)
    assert not store.plane.dictionaries.held


def test_a_budget_that_cannot_carry_one_trains_nothing(store: Store) -> None:
    fill_phrases(store, 2000)
    store.set_budget(10 * DICTIONARY_BYTES)
    store.consider_dictionary(Kind.MEMORY)
    assert not store.plane.dictionaries.held


def test_the_first_pack_of_a_sweep_trains_and_the_last_block_retires(store: Store) -> None:
    texts = fill_phrases(store, 4000)
    budget = int(0.6 * store.account.logical_bytes())
    store.set_budget(budget)
    Sweep(store, lambda: scattered_pricing(store)).run()
    assert store.plane.dictionaries.current(Kind.MEMORY) is not None
    assert store.usage().holds
    assert dict(store.texts(texts)) == texts
    store.evict(list(texts), EvictionReason.BUDGET, {})
    Sweep(store, lambda: scattered_pricing(store)).run()
    assert not store.plane.dictionaries.held
    assert store.plane.db.query("SELECT count(*) FROM dictionary") == [(0,)]


def test_without_its_dictionary_a_block_is_not_guessed_at(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory")) as store:
        texts = fill_phrases(store, 2000)
        store.consider_dictionary(Kind.MEMORY)
        store.apply_moves(dict.fromkeys(texts, Rung.PACKED))
        store.plane.db.execute("DELETE FROM dictionary")
    with closing(open_store(tmp_path / "memory")) as store:
        with pytest.raises(IntegrityError) as refused:
            store.read(next(iter(texts)))
        assert refused.value.code is Code.MISSING_DICTIONARY
        # It may come back: that is no damage.
        assert not (store.table.rows()["facts"]["flags"] & 1).any()
