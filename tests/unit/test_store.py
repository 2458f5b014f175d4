"""edge_agent.store: writing, reading, damage, recalls, stages and the byte account."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.entries import ArchiveMode, EvictionReason, NewEntry
from edge_agent.plane import STUB_BYTES
from edge_agent.recalls import BUDGET_SHARE, FEW_BYTES, FEW_SHARE
from edge_agent.store import Store
from edge_agent.table import recalls_last_stage
from shared.errors import Code, InputError, IntegrityError, PermanentError
from shared.memory.codec import digest
from shared.memory.model import Kind, MemoryClass, Provenance, Rung
from shared.memory.value import GAMMA
from shared.units import MIB
from tests.planes import PrefixCodec, fill, made_text, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "memory")) as opened:
        yield opened


def test_an_entry_comes_back_as_it_was_written(store: Store) -> None:
    entry = NewEntry(
        "The fridge is at 4 °C.",
        Kind.MEMORY,
        MemoryClass.RULE,
        references=(),
        public_id=b"i" * 16,
        created_wall_ns=77,
        core=True,
    )
    number = store.add(entry)
    held = store.read(number)
    assert (held.text, held.base_text, held.rung, held.overlay) == (entry.text, entry.text, Rung.FULL, None)
    assert (held.kind, held.memory_class, held.core) == (Kind.MEMORY, MemoryClass.RULE, True)
    assert (held.public_id, held.created_wall_ns, held.created_stage, held.version) == (b"i" * 16, 77, 1, 1)
    assert held.digest == digest(entry.text.encode()) == held.base_digest
    assert held.provenance is Provenance.ORIGINAL
    assert store.number_of(b"i" * 16) == number
    assert store.id_of(number) == b"i" * 16


def test_references_are_kept_once_each(store: Store) -> None:
    first, second = store.add(NewEntry("one")), store.add(NewEntry("two"))
    third = store.add(NewEntry("three", references=(second, first, second)))
    assert store.read(third).references == (second, first)


def test_a_known_id_is_refused_and_changes_nothing(store: Store) -> None:
    store.add(NewEntry("one", public_id=b"i" * 16))
    before = store.meta.event, store.account.logical_bytes()
    for again in ([NewEntry("two", public_id=b"i" * 16)], [NewEntry("x", public_id=b"j" * 16)] * 2):
        with pytest.raises(InputError) as refused:
            store.add_many(again)
        assert refused.value.code is Code.DUPLICATE_ID
    assert (store.meta.event, store.account.logical_bytes()) == before
    assert len(store) == 1


def test_an_id_of_another_length_is_refused(store: Store) -> None:
    with pytest.raises(InputError) as refused:
        store.add(NewEntry("one", public_id=b"short"))
    assert refused.value.code is Code.BAD_ID


def test_an_entry_larger_than_the_budget_is_refused_with_both_numbers(store: Store) -> None:
    store.set_budget(50_000)
    with pytest.raises(InputError) as refused:
        store.add(NewEntry("x" * 60_000))
    assert refused.value.code is Code.ENTRY_OVER_BUDGET
    assert refused.value.facts["budget_bytes"] == 50_000
    assert isinstance(refused.value.facts["entry_bytes"], int)
    assert refused.value.facts["entry_bytes"] > 60_000
    assert len(store) == 0


def test_a_store_of_another_tenant_or_ladder_is_refused_by_both_names(tmp_path: Path) -> None:
    open_store(tmp_path / "memory", tenant="home").close()
    with pytest.raises(PermanentError, match=r"'home'.*'work'") as refused:
        open_store(tmp_path / "memory", tenant="work")
    assert refused.value.code is Code.WRONG_TENANT_STORE
    with pytest.raises(PermanentError, match=r"'product'.*'paper'") as refused:
        open_store(tmp_path / "memory", ladder="paper")
    assert refused.value.code is Code.WRONG_LADDER


def test_the_empty_store_is_measured_once_and_is_small(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory")) as store:
        empty = store.meta.empty_bytes
        assert 0 < empty <= 256 * 1024
        assert store.usage().disk_bytes == empty
        fill(store, 50, 400)
    with closing(open_store(tmp_path / "memory")) as store:
        assert store.meta.empty_bytes == empty


@pytest.mark.parametrize("rung", [Rung.FULL, Rung.PACKED, Rung.COMPRESSED])
def test_flipped_bytes_are_never_served_and_mark_the_entry(tmp_path: Path, rung: Rung) -> None:
    store = open_store(tmp_path / "memory")
    texts = fill(store, 8, 300)
    if rung is not Rung.FULL:
        store.apply_moves(dict.fromkeys(texts, rung))
    block, body = store.plane.db.query("SELECT number, body FROM block ORDER BY number")[0]
    flipped = body[:-1] + ("z" if body[-1] != "z" else "y") if rung is Rung.FULL else body[:-1] + b"\xff"
    store.plane.db.execute("UPDATE block SET body = ? WHERE number = ?", (flipped, block))
    store.close()
    store = open_store(tmp_path / "memory")
    hurt = [n for n in texts if int(store.table.take([n])["facts"]["block"][0]) == block]
    for number in hurt:
        with pytest.raises(IntegrityError) as damage:
            store.read(number)
        assert damage.value.code is Code.CORRUPT
    assert set(dict(store.texts(texts))) == set(texts) - set(hurt)
    flags = store.table.take(hurt)["facts"]["flags"]
    assert (flags & 1).all()
    # A damaged entry stays where it is; the others move on.
    applied = store.apply_moves(dict.fromkeys(texts, Rung.TRACE))
    assert set(applied.damaged) == set(hurt)
    assert {move.number for move in applied.moved} == set(texts) - set(hurt)
    store.close()


def test_heat_counts_by_stage(store: Store) -> None:
    first, second = store.add(NewEntry("one")), store.add(NewEntry("two"))
    store.record_recall([(first, 0.7), (second, 0.3)])
    store.record_recall([(first, 1.0)])
    assert store.read(first).heat.recalls_this_stage == 2
    store.begin_stage(1.0)
    heat = store.read(first).heat
    assert (heat.recalls, heat.recalls_this_stage, heat.recalls_last_stage) == (2, 0, 2)
    store.record_recall([(first, 1.0)])
    heat = store.read(first).heat
    assert (heat.recalls, heat.recalls_this_stage, heat.recalls_last_stage) == (3, 1, 2)
    store.begin_stage(1.0)
    store.begin_stage(1.0)
    assert recalls_last_stage(store.table.rows()["heat"], store.meta.stage).tolist() == [0, 0]


def test_idle_stages_cost_influence_when_an_entry_is_recalled_again(store: Store) -> None:
    number = store.add(NewEntry("one"))
    store.record_outcome(store.record_recall([(number, 1.0)]), 1.0, {number: 0.5}, 3)
    for _ in range(4):
        store.begin_stage(1.0)
    columns = store.value_columns()
    assert columns.idle_stages.tolist() == [3]
    store.record_recall([(number, 1.0)])
    assert store.read(number).heat.influence == pytest.approx(0.5 * GAMMA**3)
    assert store.value_columns().idle_stages.tolist() == [0]


def test_an_outcome_closes_its_recall_and_tallies_the_stage(store: Store) -> None:
    number = store.add(NewEntry("one"))
    recall_id = store.record_recall([(number, 1.0)])
    store.record_outcome(recall_id, 0.5, {number: 0.25}, 40)
    with pytest.raises(InputError) as refused:
        store.record_outcome(recall_id, 1.0, {number: 0.5}, 40)
    assert refused.value.code is Code.UNKNOWN_RECALL
    assert store.outcomes() == (0.5,)
    assert store.read(number).heat.influence == 0.25
    assert store.read(number).heat.grades == 1
    ended = store.begin_stage(2.0)
    assert (ended.stage, ended.grades, ended.outcome_sum, ended.tokens) == (1, 1, 0.5, 40)
    assert ended.capability == 50.0
    assert store.meta.scale == 2.0
    assert store.tally().capability is None


def test_the_window_holds_a_hundred_outcomes(store: Store) -> None:
    number = store.add(NewEntry("one"))
    for step in range(103):
        store.record_outcome(store.record_recall([(number, 1.0)]), step / 200, {}, 0)
    assert store.outcomes() == pytest.approx([step / 200 for step in range(3, 103)], abs=5e-4)


def test_open_recalls_keep_to_their_share_the_oldest_become_void(store: Store) -> None:
    number = store.add(NewEntry("one"))
    store.set_budget(20_000)
    ids = [store.record_recall([(number, 1.0)]) for _ in range(40)]
    held = [recall_id for recall_id in ids if store.open_recall(recall_id) is not None]
    assert 0 < len(held) < 40
    assert held == ids[-len(held) :]
    assert store.plane.recalls.charged_bytes() <= FEW_BYTES
    store.set_budget(200_000)
    ids = [store.record_recall([(number, 1.0)]) for _ in range(100)]
    assert 10 < len([recall_id for recall_id in ids if store.open_recall(recall_id) is not None]) < 100
    assert store.plane.recalls.charged_bytes() <= BUDGET_SHARE * 200_000


def test_a_small_store_keeps_the_last_recall_open(store: Store) -> None:
    number = store.add(NewEntry("one"))
    store.set_budget(4_000)
    first, _, last = (store.record_recall([(number, 0.2)] * 5) for _ in range(3))
    assert (store.open_recall(first), store.open_recall(last) is None) == (None, False)
    assert store.plane.recalls.charged_bytes() <= FEW_SHARE * 4_000


def test_co_retrieval_keeps_the_eight_strongest_edges(store: Store) -> None:
    numbers = list(fill(store, 12, 4000))
    hub = numbers[0]
    for other in numbers[1:]:
        store.record_recall([(hub, 0.5), (other, 0.5)])
    store.record_recall([(hub, 0.5), (numbers[5], 0.5)])
    edges = store.plane.graph.neighbours(hub)
    assert len(edges) == 8
    assert edges[numbers[5]] == 2
    assert numbers[11] in edges
    assert numbers[1] not in edges
    csr = store.value_columns().edges
    assert csr.indptr[-1] == len(csr.neighbour)
    row = csr.neighbour[csr.indptr[0] : csr.indptr[1]].tolist()
    assert csr.count[csr.indptr[0] : csr.indptr[1]][row.index(5)] == 2.0


def test_a_budget_below_the_floor_is_refused_with_both_numbers(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as store:
        fill(store, 100, 100)
        floor = store.usage().floor_bytes
        assert floor > 0
        with pytest.raises(InputError) as refused:
            store.set_budget(int(floor) - 1)
        assert refused.value.code is Code.BUDGET_BELOW_FLOOR
        assert refused.value.facts == {"budget_bytes": int(floor) - 1, "floor_bytes": round(floor)}
        assert not store.meta.target_pending


def test_the_account_charges_everything_that_is_kept(store: Store) -> None:
    before = store.account.logical_bytes()
    number = store.add(NewEntry("a text of some length, to be charged"))
    added = store.account.logical_bytes()
    assert added - before == pytest.approx(store.read(number).size_bytes)
    store.record_recall([(number, 1.0)])
    assert store.account.logical_bytes() > added
    assert store.usage().shared_bytes == store.plane.recalls.charged_bytes()


def test_phi_is_near_one_when_the_store_is_full_of_text(store: Store) -> None:
    fill(store, 2000, 300)
    store.shrink()
    assert 1.0 <= store.usage().phi < 1.25


def test_evicting_gives_everything_back_but_the_stub(store: Store) -> None:
    texts = fill(store, 40, 300)
    store.apply_moves(dict.fromkeys(texts, Rung.PACKED))
    store.record_recall([(number, 0.1) for number in list(texts)[:5]])
    gone = store.evict(list(texts), EvictionReason.BUDGET, {1: 0.5})
    assert [one.number for one in gone] == list(texts)
    assert (gone[0].value, gone[0].stub, gone[0].reason) == (0.5, False, EvictionReason.BUDGET)
    assert len(store) == 0
    assert store.usage().logical_bytes == store.usage().shared_bytes
    for table in ("entry", "block", "heat", "edge", "overlay", "stub", "reference"):
        assert store.plane.db.query(f"SELECT count(*) FROM {table}") == [(0,)]
    with pytest.raises(InputError) as refused:
        store.read(1)
    assert refused.value.code is Code.UNKNOWN_ID


def test_a_forgotten_text_leaves_no_byte_behind(tmp_path: Path) -> None:
    secret = "zyxq-17 opens the green door"
    with closing(open_store(tmp_path / "memory", ladder="paper")) as store:
        texts = fill(store, 10, 200)
        number = store.add(NewEntry(secret))
        # The paper ladder packs nothing: its blocks show their text.
        store.apply_moves(dict.fromkeys([*texts, number], Rung.COMPRESSED))
        store.shrink()
        assert b"zyxq-17" in (tmp_path / "memory" / "store.db").read_bytes()
        store.forget(number)
        store.shrink()
        held = b"".join(path.read_bytes() for path in (tmp_path / "memory").iterdir())
        assert b"zyxq-17" not in held
        assert set(store.table) == set(texts)


def test_everything_is_the_same_after_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory", provision_bytes=2 * MIB)
    texts = fill(store, 90, 200)
    numbers = list(texts)
    store.apply_moves({number: Rung(1 + number % 6) for number in numbers if 1 + number % 6 in {1, 3, 5, 6}})
    store.record_outcome(store.record_recall([(n, 0.2) for n in numbers[:5]]), 1.0, {numbers[0]: 0.1}, 9)
    store.evict(numbers[-3:], EvictionReason.BUDGET, {})
    shown, usage, rows = dict(store.texts(store.table)), store.usage(), store.table.rows()
    store.close()
    with closing(open_store(tmp_path / "memory")) as again:
        assert dict(again.texts(again.table)) == shown
        assert again.table.rows().tobytes() == rows.tobytes()
        assert again.usage().logical_bytes == pytest.approx(usage.logical_bytes)
        assert again.meta.provision_bytes == 2 * MIB
        assert again.outcomes() == (1.0,)
        assert again.add(NewEntry("next")) == numbers[-1] + 1


def test_numbers_are_never_given_twice(store: Store) -> None:
    first = store.add(NewEntry("one"))
    store.evict([first], EvictionReason.BUDGET, {})
    assert store.add(NewEntry("two")) > first


def test_a_stub_is_charged_as_24_bytes(store: Store) -> None:
    assert STUB_BYTES == 24
    store.plane.stubs[5] = b"\0" * 16
    assert store.account.floor_bytes() == 24


def test_texts_of_a_block_are_read_in_one_pass(store: Store) -> None:
    texts = fill(store, 64, 150)
    store.apply_moves(dict.fromkeys(texts, Rung.PACKED))
    assert len(store.plane.bodies.blocks) == 1
    assert dict(store.texts(texts)) == texts


def test_a_base_depends_on_original_levelling_and_rung_alone(store: Store) -> None:
    text = made_text(random.Random(5), 700)
    straight, stepwise = store.add(NewEntry(text)), store.add(NewEntry(text))
    store.apply_moves({straight: Rung.TRACE})
    for rung in (Rung.PACKED, Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE):
        store.apply_moves({stepwise: rung})
    assert store.read(straight).record == store.read(stepwise).record
    assert store.read(straight).base_text == PrefixCodec().render(store.read(stepwise).record)
    assert store.read(straight).provenance is Provenance.EXACT
