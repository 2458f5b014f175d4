"""Vectors in the store: charged, shed, gone with their entries, the same after a restart, of one model."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edge_agent.entries import ArchiveMode, EvictionReason, ExactText, NewEntry
from edge_agent.opening import StoreOptions
from edge_agent.plane import size_bytes
from edge_agent.store import Store
from edge_agent.sweep import Sweep
from edge_agent.vectors import VECTOR_ROW_BYTES
from shared.errors import Code, PermanentError
from shared.memory.model import LADDERS, Kind, Rung
from shared.memory.vectors import Floats, Rotation, Signature, bits, centred, encode, scores
from tests.fakes import FakeClock, SeededRng
from tests.planes import PrefixCodec, acknowledge_all, fill, open_store, scattered_pricing

MODEL = Signature("model-a", 64, "mean")
OTHER = Signature("model-b", 32, "cls", "query: ", "passage: ")
WIDE = Signature("wide", 384, "mean")
EACH = MODEL.width // 8 + VECTOR_ROW_BYTES


def made(count: int, width: int = MODEL.width, seed: int = 1) -> Floats:
    rows = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def embed_all(store: Store, signature: Signature = MODEL, step: int = 64) -> int:
    """Vectors for everything that wants one, as many as fit; an entry's is seeded by its number."""
    kept = 0
    while entries := store.vectors.wanting(signature, step, 10**9):
        vectors = np.concatenate([made(1, signature.width, entry.number) for entry in entries])
        if not (done := store.vectors.keep(signature, entries, vectors)):
            break
        kept += done
        store.shrink()
    return kept


def open_with(directory: Path, embedder: Signature | None) -> Store:
    options = StoreOptions("home", LADDERS["product"], 2**28, embedder=embedder)
    codecs = dict.fromkeys(Kind, PrefixCodec())
    return Store.open(directory, options, codecs=codecs, clock=FakeClock(), rng=SeededRng(0))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def on_disk(store: Store) -> dict[int, bytes]:
    return dict(store.plane.db.query("SELECT number, code FROM vector"))


def check(store: Store) -> None:
    """Disk, memory and the account tell the same story."""
    rows = store.table.rows()
    held = set(rows["number"][rows["vector_bytes"] > 0].tolist())
    assert on_disk(store).keys() == held
    assert set(store.plane.vectors.numbers().tolist()) == held
    assert store.account.entries_bytes() == pytest.approx(float(size_bytes(rows).sum()))
    low = rows["facts"]["rung"] > Rung.COMPRESSED
    assert not rows["vector_bytes"][low].any()


def test_a_vector_is_charged_and_found(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 50, 300)
        before = store.account.logical_bytes()
        assert embed_all(store) == 50
        charged = 50 * EACH + len(store.meta.embedder)
        assert store.account.logical_bytes() - before == pytest.approx(charged, abs=0.5)
        assert store.read(7).size_bytes > 7
        for number in (1, 25, 50):
            query = made(1, MODEL.width, number)[0]
            assert store.vectors.search(query, 3)[0].number == number
        counts = store.vectors.counts()
        assert (counts.embedded, counts.pending, counts.without) == (50, 0, 0)
        check(store)


def test_a_search_is_centred_by_the_stores_own_codes(directory: Path) -> None:
    """What every text shares says nothing: without centring it decides."""
    shared, own = made(1, seed=5)[0] * 3, made(60, seed=6)
    vectors = shared + own
    vectors = np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
    with closing(open_store(directory)) as store:
        fill(store, 60, 100)
        entries = store.vectors.wanting(MODEL, 60, 10**9)
        store.vectors.keep(MODEL, entries, vectors)
        rotation = Rotation(MODEL.width)
        codes = encode(rotation, vectors)
        query = made(1, seed=7)[0]
        rotated = rotation.apply(query.reshape(1, -1))[0]
        expected = scores(centred(rotated, bits(codes), 60), np.ascontiguousarray(codes.T))
        plain = scores(rotated, np.ascontiguousarray(codes.T))
        found = {hit.number - 1: hit.score for hit in store.vectors.search(query, 60)}
        assert np.allclose([found[place] for place in range(60)], expected, atol=1e-4)
        assert np.argsort(-expected).tolist() != np.argsort(-plain).tolist()


def test_the_search_is_the_same_after_a_restart_whatever_went_before(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 200, 100)
        embed_all(store)
        for number in (1, 199, 50, 51, 200, 2):
            store.forget(number)
        store.add_many([NewEntry(f"later {place}") for place in range(30)])
        embed_all(store)
        queries = made(20, seed=99)
        before = [store.vectors.search(query, 50) for query in queries]
        check(store)
    with closing(open_store(directory)) as store:
        assert [store.vectors.search(query, 50) for query in queries] == before
        check(store)


@pytest.mark.parametrize("rung", [Rung.PACKED, Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE])
def test_a_vector_goes_below_compressed_and_with_its_entry(directory: Path, rung: Rung) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 40, 400)
        embed_all(store)
        store.apply_moves(dict.fromkeys(range(1, 21), rung))
        kept = rung <= Rung.COMPRESSED
        assert len(store.vectors) == (40 if kept else 20)
        assert (3 in store.vectors) is kept
        check(store)
        assert store.vectors.counts().pending == 0
        store.forget(30)
        assert 30 not in store.vectors
        check(store)


def test_a_restored_entry_wants_a_vector_again(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        texts = fill(store, 10, 400)
        embed_all(store)
        store.apply_moves({3: Rung.TRACE})
        assert store.vectors.counts().without == 1
        store.restore_exact([ExactText(3, texts[3], None)], Rung.PACKED)
        [entry] = store.vectors.wanting(MODEL, 10, 10**6)
        assert (entry.number, entry.text) == (3, texts[3])
        embed_all(store)
        check(store)


def test_plans_count_what_shedding_frees(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 30, 400)
        without = store.sweep_columns(scattered_pricing(store)).size_bytes.copy()
        embed_all(store)
        sizes = store.sweep_columns(scattered_pricing(store)).size_bytes
        spared = [spec.rung <= Rung.COMPRESSED for spec in store.plane.ladder.rungs]
        grown = sizes - without
        assert np.abs(grown[:, spared] - EACH).max() <= 1
        assert np.abs(grown[:, [not spare for spare in spared]]).max() <= 1


def test_a_vector_that_does_not_fit_is_not_made_and_demotes_nothing(directory: Path) -> None:
    with closing(open_store(directory, provision_bytes=200_000)) as store:
        fill(store, 200, 800)
        store.shrink()
        store.set_budget(store.account.disk_bytes() - store.meta.empty_bytes + 25_000)
        rungs = store.usage().rungs
        wide = Signature("wide", 1024, "mean")
        kept = embed_all(store, wide)
        usage = store.usage()
        assert 0 < kept < 200
        assert usage.rungs == rungs
        assert usage.holds
        assert store.vectors.counts().pending == 200 - kept
        assert store.vectors.wanting(wide, 10, 10**6) == []


def test_vectors_go_before_any_entry_does(directory: Path) -> None:
    """Texts too short to be worth lowering: their vectors are what a squeeze can take without losing one."""
    with closing(open_store(directory, ladder="packed")) as store:
        store.add_many([NewEntry(f"note {place}: the {place * 7919 % 1000}th door") for place in range(400)])
        embed_all(store)
        store.apply_moves(dict.fromkeys(range(1, 401), Rung.PACKED))
        packed = store.account.logical_bytes()
        store.set_budget(round(packed - 100 * EACH))
        report = Sweep(store, lambda: scattered_pricing(store)).run()
        assert report.evicted == []
        assert report.shed > 0
        assert report.usage is not None
        assert report.usage.holds
        assert len(store) == 400
        check(store)
        # The least valuable ones went.
        worth = scattered_pricing(store).values
        has = store.table.rows()["vector_bytes"] > 0
        assert has.any()
        assert worth[has].min() >= worth[~has].max()


def test_pages_that_shedding_leaves_half_empty_are_written_anew(directory: Path) -> None:
    """Else the file is larger than its account, and more entries are lowered to make up for it."""
    with closing(open_store(directory)) as store:
        fill(store, 6000, 200)
        embed_all(store, WIDE, 2000)
        store.set_budget((store.account.disk_bytes() - store.meta.empty_bytes) // 2)
        before = on_disk(store)
        report = Sweep(store, lambda: scattered_pricing(store)).run()
        assert report.usage is not None
        assert report.usage.holds
        assert 0 < len(store.vectors) < 6000
        assert store.meta.vector_holes < 0.01 * len(store.vectors)
        assert report.usage.logical_bytes > 0.92 * store.meta.budget_bytes
        # As they were, byte for byte.
        assert on_disk(store).items() <= before.items()
        check(store)


def test_evictions_go_on_once_no_vector_is_left(directory: Path) -> None:
    with closing(open_store(directory, ladder="packed")) as store:
        store.add_many([NewEntry(f"note {place}: the {place * 7919 % 1000}th door") for place in range(400)])
        embed_all(store)
        store.set_budget(round(store.account.logical_bytes() * 0.35))
        report = Sweep(store, lambda: scattered_pricing(store)).run()
        assert report.evicted
        assert report.usage is not None
        assert report.usage.holds
        assert len(store.vectors) == 0
        check(store)


def test_a_demotion_moves_no_page_of_the_vectors(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 60, 400)
        embed_all(store)
        before = on_disk(store)
        store.apply_moves(dict.fromkeys(range(1, 61), Rung.PACKED))
        assert on_disk(store) == before


def test_the_same_store_refuses_another_model_by_both_names(directory: Path) -> None:
    with closing(open_with(directory, MODEL)) as store:
        fill(store, 5, 100)
        embed_all(store)
    for wrong in (OTHER, replace(MODEL, pooling="cls"), replace(MODEL, query_prefix="query: ")):
        with pytest.raises(PermanentError) as caught:
            open_with(directory, wrong)
        assert caught.value.code is Code.WRONG_EMBEDDER
        assert "model-a" in caught.value.message
        assert wrong.model in caught.value.message
        assert "crystalmem reembed" in caught.value.hint
    for fine in (MODEL, None):
        with closing(open_with(directory, fine)) as store:
            assert len(store.vectors) == 5


def test_a_store_without_vectors_takes_any_model(directory: Path) -> None:
    with closing(open_with(directory, MODEL)) as store:
        fill(store, 5, 100)
    with closing(open_with(directory, OTHER)) as store:
        assert embed_all(store, OTHER) == 5
        assert store.vectors.signature == OTHER


def test_another_model_takes_over_in_one_commit(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 20, 200)
        embed_all(store)
        before = store.account.logical_bytes()
        store.vectors.adopt(OTHER)
        assert (len(store.vectors), store.vectors.signature) == (0, OTHER)
        assert before - store.account.logical_bytes() == pytest.approx(20 * EACH, abs=100)
        assert store.vectors.counts().pending == 20
        check(store)
    with closing(open_with(directory, OTHER)) as store:
        assert embed_all(store, OTHER) == 20
        assert {len(code) for code in on_disk(store).values()} == {OTHER.width // 8}
        check(store)


def test_a_code_of_a_wrong_length_is_dropped_and_made_again(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 5, 100)
        embed_all(store)
        with store.plane.db.write():
            store.plane.db.execute("UPDATE vector SET code = ? WHERE number = 2", (b"short",))
    with closing(open_store(directory)) as store:
        assert 2 not in store.vectors
        assert store.vectors.counts().pending == 1
        check(store)
        assert embed_all(store) == 1


def test_what_changed_meanwhile_gets_no_vector(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 6, 400)
        entries = store.vectors.wanting(MODEL, 6, 10**6)
        store.forget(1)
        store.apply_moves({2: Rung.TRACE})
        stale = [replace(entries[2], version=9), *entries[:2], *entries[3:]]
        vectors = made(6)
        assert store.vectors.keep(MODEL, stale, vectors) == 3
        assert sorted(store.plane.vectors.numbers().tolist()) == [4, 5, 6]
        assert store.vectors.search(vectors[3], 1)[0].number == 4
        assert store.vectors.keep(MODEL, stale, vectors) == 0
        check(store)


def test_a_step_of_the_queue_is_bounded(directory: Path) -> None:
    with closing(open_store(directory)) as store:
        fill(store, 30, 1000)
        assert len(store.vectors.wanting(MODEL, 8, 10**6)) == 8
        assert len(store.vectors.wanting(MODEL, 30, 1500)) < 5
        assert len(store.vectors.wanting(MODEL, 1, 1)) == 1
        assert [entry.number for entry in store.vectors.wanting(MODEL, 3, 10**6, {1, 3})] == [2, 4, 5]


def test_an_archived_eviction_leaves_no_vector_behind(directory: Path) -> None:
    with closing(open_store(directory, archive=ArchiveMode.ALWAYS)) as store:
        fill(store, 10, 300)
        embed_all(store)
        acknowledge_all(store)
        store.evict([4, 5], EvictionReason.BUDGET, {})
        assert len(store.vectors) == 8
        check(store)
