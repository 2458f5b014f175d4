"""edge_agent.mover and edge_agent.restorer: blocks, overlays, exact restores, frozen levels, stubs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from edge_agent.entries import ArchiveMode, EvictionReason, ExactText, NewEntry, Overlay
from edge_agent.store import Store
from shared.errors import Code, CrystalError, InputError, IntegrityError, PermanentError
from shared.memory.model import Kind, Provenance, Rung
from tests.planes import PrefixCodec, acknowledge_all, archived_entry, fill, made_text, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as opened:
        yield opened


def refused_with(code: Code) -> pytest.RaisesExc[CrystalError]:
    return pytest.raises(CrystalError, check=lambda error: error.code is code)


def test_runs_of_one_kind_and_rung_become_blocks_of_64(store: Store) -> None:
    rng = random.Random(2)
    kinds = {
        store.add(NewEntry(made_text(rng, 100), kind)): kind for kind in (Kind.MEMORY, Kind.EPISODE) * 80
    }
    store.apply_moves(dict.fromkeys(kinds, Rung.PACKED))
    members: dict[int, list[int]] = {}
    for row in store.table.rows():
        members.setdefault(int(row["facts"]["block"]), []).append(int(row["number"]))
    assert sorted(len(numbers) for numbers in members.values()) == [16, 16, 64, 64]
    for numbers in members.values():
        assert len({kinds[number] for number in numbers}) == 1
    assert store.plane.db.query("SELECT count(*) FROM block") == [(4,)]


def test_a_long_text_has_a_block_of_its_own(store: Store) -> None:
    texts = fill(store, 3, 60_000)
    store.apply_moves(dict.fromkeys(texts, Rung.PACKED))
    assert len(store.plane.bodies.blocks) == 3
    assert dict(store.texts(texts)) == texts


def test_a_block_goes_with_its_last_member_and_dead_bytes_are_charged(store: Store) -> None:
    texts = fill(store, 10, 200)
    store.apply_moves(dict.fromkeys(texts, Rung.PACKED))
    (block,) = store.plane.bodies.blocks.values()
    store.apply_moves(dict.fromkeys(list(texts)[:4], Rung.FULL))
    assert store.account.shared_bytes() > block.dead_bytes > 0
    assert block.live_members == 6
    store.rewrite(list(texts)[4:])
    assert store.plane.bodies.dead_bytes() == pytest.approx(0, abs=1e-6)
    store.apply_moves(dict.fromkeys(list(texts)[4:], Rung.FULL))
    assert not store.plane.bodies.blocks
    assert dict(store.texts(texts)) == texts


def test_a_lossy_base_is_not_lifted_from_itself(store: Store) -> None:
    (number,) = fill(store, 1, 300)
    store.apply_moves({number: Rung.SKELETAL})
    for to in (Rung.FULL, Rung.PACKED, Rung.COMPRESSED):
        with refused_with(Code.INTERNAL):
            store.apply_moves({number: to})
    assert store.read(number).rung is Rung.SKELETAL


def test_a_rung_that_the_ladder_lacks_is_refused(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", ladder="paper")) as store:
        (number,) = fill(store, 1, 300)
        with pytest.raises(KeyError):
            store.apply_moves({number: Rung.PACKED})


def test_an_overlay_shows_and_says_so_and_the_base_stays(store: Store) -> None:
    (number,) = fill(store, 1, 300)
    store.apply_moves({number: Rung.TRACE})
    base, before = store.read(number), store.account.entries_bytes()
    store.put_overlay(number, 1, base.base_digest, Overlay(Rung.COMPRESSED, "made up", "m-7", 9))
    held = store.read(number)
    assert (held.text, held.base_text, held.rung) == ("made up", base.base_text, Rung.TRACE)
    assert (held.shown_rung, held.provenance) == (Rung.COMPRESSED, Provenance.REGENERATED)
    assert held.overlay is not None
    assert (held.overlay.model, held.overlay.created_wall_ns) == ("m-7", 9)
    assert dict(store.texts([number])) == {number: "made up"}
    assert store.account.entries_bytes() > before + len("made up")
    assert store.usage().overlays == 1
    store.drop_overlay(number)
    assert store.read(number) == base
    assert store.account.entries_bytes() == before


def test_a_move_takes_the_overlay_with_it(store: Store) -> None:
    first, second = fill(store, 2, 300)
    store.apply_moves({first: Rung.SKELETAL, second: Rung.SKELETAL})
    for number in (first, second):
        digest = store.read(number).base_digest
        store.put_overlay(number, 1, digest, Overlay(Rung.COMPRESSED, "made up", "m", 9))
    applied = store.apply_moves({first: Rung.SKELETAL, second: Rung.TRACE})
    assert {(move.number, move.origin, move.to) for move in applied.moved} == {
        (first, Rung.COMPRESSED, Rung.SKELETAL),
        (second, Rung.COMPRESSED, Rung.TRACE),
    }
    assert store.read(first).overlay is None
    assert store.read(second).overlay is None
    assert store.read(second).rung is Rung.TRACE


def test_a_draft_for_an_older_base_is_refused(store: Store) -> None:
    (number,) = fill(store, 1, 300)
    store.apply_moves({number: Rung.SKELETAL})
    digest = store.read(number).base_digest
    store.apply_moves({number: Rung.TRACE})
    with refused_with(Code.NOT_RESTORABLE):
        store.put_overlay(number, 1, digest, Overlay(Rung.COMPRESSED, "late", "m", 9))
    with refused_with(Code.NOT_RESTORABLE):
        store.put_overlay(number, 2, store.read(number).base_digest, Overlay(Rung.COMPRESSED, "late", "m", 9))
    assert store.read(number).overlay is None


@pytest.mark.parametrize("rung", [Rung.PACKED, Rung.TRACE, Rung.SKELETAL])
def test_an_overlay_stands_above_its_base_and_is_never_packed(store: Store, rung: Rung) -> None:
    (number,) = fill(store, 1, 300)
    store.apply_moves({number: Rung.SKELETAL})
    with refused_with(Code.INTERNAL):
        store.put_overlay(number, 1, store.read(number).base_digest, Overlay(rung, "text", "m", 9))


def test_an_exact_restore_takes_the_overlay_it_reaches(store: Store) -> None:
    texts = fill(store, 3, 300)
    low, high, shallow = texts
    store.apply_moves(dict.fromkeys(texts, Rung.TRACE))
    for number, rung in ((low, Rung.SKELETAL), (high, Rung.FULL), (shallow, Rung.COMPRESSED)):
        store.put_overlay(number, 1, store.read(number).base_digest, Overlay(rung, "made up", "m", 9))
    store.restore_exact([ExactText(low, texts[low]), ExactText(high, texts[high])], Rung.PACKED)
    store.restore_exact([ExactText(shallow, texts[shallow])], Rung.SKELETAL)
    assert store.read(low).overlay is None
    assert store.read(low).text == texts[low]
    # FULL stands above PACKED and COMPRESSED above SKELETAL: those drafts still show more.
    assert store.read(high).overlay is not None
    assert store.read(shallow).overlay is not None
    assert (store.read(high).rung, store.read(shallow).rung) == (Rung.PACKED, Rung.SKELETAL)


def test_a_restore_is_checked_whole_before_anything_changes(store: Store) -> None:
    texts = fill(store, 2, 300)
    good, bad = texts
    store.apply_moves(dict.fromkeys(texts, Rung.TRACE))
    with pytest.raises(IntegrityError) as refused:
        store.restore_exact([ExactText(good, texts[good]), ExactText(bad, texts[bad] + ".")], Rung.PACKED)
    assert refused.value.code is Code.DIGEST_MISMATCH
    assert store.read(good).rung is Rung.TRACE
    with refused_with(Code.INTERNAL):
        store.restore_exact([ExactText(good, texts[good])], Rung.TRACE)


def test_a_damaged_entry_is_made_whole_by_a_restore(store: Store) -> None:
    texts = fill(store, 2, 300)
    hurt = next(iter(texts))
    block = int(store.table.take([hurt])["facts"]["block"][0])
    store.plane.db.execute("UPDATE block SET body = 'other' WHERE number = ?", (block,))
    with refused_with(Code.CORRUPT):
        store.read(hurt)
    store.restore_exact([ExactText(hurt, texts[hurt])], Rung.PACKED)
    assert dict(store.texts(texts)) == texts
    assert not (store.table.take([hurt])["facts"]["flags"] & 1).any()


def test_levels_are_frozen_once_the_hub_has_layers(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as store:
        shipped, kept = fill(store, 2, 300)
        store.link.ship([shipped])
        acknowledge_all(store)
        assert (store.read(shipped).archived, store.read(kept).archived) == (True, False)
        assert store.read(shipped).levelling == 1
    newer = PrefixCodec(levelling=2)
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED, codec=newer)) as store:
        with pytest.raises(PermanentError) as refused:
            store.apply_moves({shipped: Rung.TRACE})
        assert refused.value.code is Code.LEVELS_FROZEN
        store.apply_moves({shipped: Rung.PACKED, kept: Rung.TRACE})
        assert store.read(kept).levelling == 2
        assert store.read(shipped).rung is Rung.PACKED


def test_an_archived_entry_leaves_a_stub_and_comes_back_under_its_number(store: Store) -> None:
    texts = fill(store, 3, 300)
    number = next(iter(texts))
    cited = store.add(NewEntry("cites", references=(number,)))
    store.link.ship([number, cited])
    acknowledge_all(store)
    known, citing = store.read(number), store.read(cited)
    gone = store.evict([number, cited, 2], EvictionReason.PRICED, {number: 0.25})
    assert [one.stub for one in gone] == [True, True, False]
    (stub, other) = store.stubs()
    assert (stub.number, stub.version, stub.value) == (number, 1, 0.25)
    assert known.digest.startswith(stub.digest_prefix)
    assert store.stubs(after=number) == (other,)
    assert store.usage().stubs == 2
    wrong = replace(archived_entry(known), digest=b"w" * 16)
    with refused_with(Code.DIGEST_MISMATCH):
        store.restore_exact([ExactText(number, texts[number], wrong)], Rung.PACKED)
    with refused_with(Code.NOT_RESTORABLE):
        store.restore_exact([ExactText(number, texts[number])], Rung.PACKED)
    with refused_with(Code.NOT_RESTORABLE):
        store.restore_exact([ExactText(2, texts[2], archived_entry(known))], Rung.PACKED)
    store.restore_exact([ExactText(number, texts[number], archived_entry(known))], Rung.PACKED)
    store.restore_exact([ExactText(cited, "cites", archived_entry(citing))], Rung.FULL)
    back = store.read(number)
    assert (back.text, back.public_id, back.rung, back.archived) == (
        texts[number],
        known.public_id,
        Rung.PACKED,
        True,
    )
    assert store.number_of(known.public_id) == number
    assert store.read(cited).references == (number,)
    assert store.stubs() == ()
    assert store.table.numbers().tolist() == sorted(store.table)


def test_an_unknown_number_is_refused(store: Store) -> None:
    for call in (lambda: store.read(9), lambda: store.drop_overlay(9), lambda: store.forget(9)):
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.code is Code.UNKNOWN_ID
