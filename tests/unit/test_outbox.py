"""edge_agent.outbox, deltas and dispatch: the delta table of spec.md 5, sealing, acks, new epochs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.entries import ArchiveMode, EvictionReason, ExactText, NewEntry, Overlay
from edge_agent.store import Store
from edge_agent.sweep import Sweep
from shared.errors import Code, IntegrityError
from shared.memory.codec import decode, digest
from shared.memory.model import Provenance, Rung
from shared.messages import Created, Delta, Forgotten, Layers, Residue, State
from shared.scope import tombstone_hash
from shared.wire import BATCH_TARGET_BYTES, NO_CHAIN, Ack, decode_batch, next_chain
from tests.planes import PrefixCodec, acknowledge_all, fill, flat_pricing, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as opened:
        yield opened


def kinds(deltas: list[Delta]) -> list[tuple[type[Delta], int]]:
    return [(type(delta), delta.number) for delta in deltas]


def test_without_a_hub_nothing_is_queued(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "memory")) as store:
        texts = fill(store, 5, 200)
        store.apply_moves(dict.fromkeys(texts, Rung.TRACE))
        store.evict([1], EvictionReason.BUDGET, {})
        assert store.link.ship(texts) == 0
        assert store.link.waiting == 0
        assert store.link.sealed() is None


@pytest.mark.parametrize("mode", list(ArchiveMode))
def test_the_delta_table(tmp_path: Path, mode: ArchiveMode) -> None:
    with closing(open_store(tmp_path / "memory", archive=mode)) as store:
        number = store.add(NewEntry("A text. " * 40, references=(7,)))
        store.set_values({number: 0.5})
        (created,) = acknowledge_all(store)
        assert isinstance(created, Created)
        held = store.read(number)
        assert (created.public_id, created.version, created.digest) == (held.public_id, 1, held.digest)
        assert (created.text_bytes, created.links, created.value) == (held.text_bytes, (7,), 0.5)
        if mode is ArchiveMode.ALWAYS:
            assert decode(created.original).decode() == held.text
        else:
            assert created.original == b""
        assert held.archived == (mode is ArchiveMode.ALWAYS)

        assert store.link.ship([number]) == (1 if mode is ArchiveMode.DEMOTED else 0)
        shipped = acknowledge_all(store)
        assert kinds(shipped) == ([(Layers, number)] if mode is ArchiveMode.DEMOTED else [])

        store.apply_moves({number: Rung.PACKED})
        assert acknowledge_all(store) == []
        store.apply_moves({number: Rung.SKELETAL})
        (residue,) = acknowledge_all(store)
        assert isinstance(residue, Residue)
        assert (residue.rung, residue.levelling) == (Rung.SKELETAL, 1)
        assert decode(residue.payload) == store.read(number).record

        store.put_overlay(number, 1, store.read(number).base_digest, Overlay(Rung.FULL, "draft", "m", 1))
        (covered,) = acknowledge_all(store)
        assert covered == State(covered.seq, number, 1, Rung.SKELETAL, Rung.FULL, Provenance.REGENERATED, 0.5)
        store.restore_exact([ExactText(number, "A text. " * 40)], Rung.FULL)
        (promoted,) = acknowledge_all(store)
        assert promoted == State(promoted.seq, number, 1, Rung.FULL, Rung.FULL, Provenance.ORIGINAL, 0.5)
        store.evict([number], EvictionReason.BUDGET, {number: 0.5})
        (evicted,) = acknowledge_all(store)
        assert isinstance(evicted, State)
        assert (evicted.rung, evicted.overlay_rung, evicted.version) == (Rung.EVICTED, Rung.EVICTED, 1)


def test_layers_join_to_the_original(store: Store) -> None:
    (number,) = texts = fill(store, 1, 500)
    store.link.ship([number])
    layers = acknowledge_all(store)[-1]
    assert isinstance(layers, Layers)
    joined = "".join(layer.payload.decode() for layer in reversed(layers.layers))
    assert digest(joined.encode()) == digest(texts[number].encode())


def test_a_delta_tells_the_present_state_and_repeats_are_one_row(store: Store) -> None:
    (number,) = fill(store, 1, 400)
    acknowledge_all(store)
    for rung in (Rung.COMPRESSED, Rung.SKELETAL, Rung.TRACE):
        store.apply_moves({number: rung})
    assert store.link.waiting == 1
    (residue,) = acknowledge_all(store)
    assert isinstance(residue, Residue)
    assert residue.rung is Rung.TRACE


def test_an_entry_that_the_hub_never_knew_goes_without_a_word(store: Store) -> None:
    first, second = fill(store, 2, 400)
    store.apply_moves({first: Rung.TRACE})
    store.link.ship([second])
    store.evict([first], EvictionReason.BUDGET, {})
    store.forget(second)
    assert store.link.waiting == 0
    assert store.account.floor_bytes() == 0


def test_a_forgotten_entry_is_told_by_its_tombstone(store: Store) -> None:
    (number,) = fill(store, 1, 400)
    public_id = store.id_of(number)
    acknowledge_all(store)
    store.forget(number)
    (told,) = acknowledge_all(store)
    assert told == Forgotten(told.seq, number, 1, tombstone_hash("home", public_id))
    assert store.plane.db.query("SELECT count(*) FROM tombstone") == [(0,)]


def test_the_batch_in_flight_is_the_same_bytes_until_acked(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)
    texts = fill(store, 3, 200)
    body = store.link.sealed()
    store.apply_moves(dict.fromkeys(texts, Rung.TRACE))
    assert store.link.sealed() == body
    store.close()
    with closing(open_store(tmp_path / "memory", archive=ArchiveMode.DEMOTED)) as store:
        assert store.link.sealed() == body
        assert kinds(acknowledge_all(store)) == [
            *((Created, number) for number in texts),
            *((Residue, number) for number in texts),
        ]
        assert store.link.waiting == 0
        state = store.link.state()
        assert (state.acked_seq, state.highest_seq, state.generation) == (6, 6, 1)


def test_batches_chain_and_rise(store: Store) -> None:
    fill(store, 150, 50)
    chain, acked = NO_CHAIN, 0
    while (body := store.link.sealed()) is not None:
        batch = decode_batch(body)
        assert (batch.epoch, batch.prev_seq) == (store.meta.epoch, acked)
        assert len(batch.deltas) <= 64
        assert len(body) <= BATCH_TARGET_BYTES
        chain, acked = next_chain(chain, body), batch.last_seq
        store.link.acked(Ack("home", batch.epoch, batch.last_seq, chain, 3))
        assert (store.meta.chain, store.meta.acked_seq) == (chain, acked)
    assert acked == 150


def test_an_ack_of_other_bytes_stops_everything_and_changes_nothing(store: Store) -> None:
    fill(store, 2, 100)
    body = store.link.sealed()
    assert body is not None
    batch = decode_batch(body)
    with pytest.raises(IntegrityError) as refused:
        store.link.acked(Ack("home", batch.epoch, batch.last_seq, b"x" * 32, 1))
    assert refused.value.code is Code.CHAIN_MISMATCH
    assert store.link.sealed() == body
    assert store.meta.acked_seq == 0


def test_an_ack_of_another_batch_or_epoch_does_nothing(store: Store) -> None:
    fill(store, 2, 100)
    body = store.link.sealed()
    assert body is not None
    batch, chain = decode_batch(body), next_chain(NO_CHAIN, body)
    store.link.acked(Ack("home", b"e" * 16, batch.last_seq, chain, 1))
    store.link.acked(Ack("home", batch.epoch, batch.last_seq - 1, chain, 1))
    assert store.link.sealed() == body


def test_layers_that_the_hub_did_not_keep_are_no_source(store: Store) -> None:
    first, second = fill(store, 2, 400)
    store.link.ship([first, second])
    acknowledge_all(store, not_archived=frozenset({first}))
    assert (store.read(first).archived, store.read(second).archived) == (False, True)
    assert store.link.ship([first, second]) == 1


def test_a_demotion_before_the_seal_ships_no_layers(store: Store) -> None:
    (number,) = fill(store, 1, 400)
    acknowledge_all(store)
    store.link.ship([number])
    store.apply_moves({number: Rung.TRACE})
    assert kinds(acknowledge_all(store)) == [(Residue, number)]
    assert not store.read(number).archived


def test_entries_that_the_hub_knows_as_forgotten_are_named(store: Store) -> None:
    fill(store, 3, 100)
    body = store.link.sealed()
    assert body is not None
    batch = decode_batch(body)
    chain = next_chain(NO_CHAIN, body)
    settled = store.link.acked(Ack("home", batch.epoch, batch.last_seq, chain, 1, (), (batch.deltas[1].seq,)))
    assert settled.forgotten == (batch.deltas[1].number,)


def test_a_new_epoch_tells_every_live_entry_again_and_believes_no_archive(store: Store) -> None:
    texts = fill(store, 4, 300)
    first, second, third, fourth = texts
    store.link.ship([first, second])
    acknowledge_all(store)
    store.apply_moves({second: Rung.TRACE, third: Rung.SKELETAL})
    store.put_overlay(third, 1, store.read(third).base_digest, Overlay(Rung.COMPRESSED, "draft", "m", 1))
    store.evict([fourth], EvictionReason.BUDGET, {})
    store.link.sealed()
    old = store.meta.epoch
    store.link.fenced(9)
    assert store.meta.epoch != old
    assert (store.meta.acked_seq, store.meta.chain, store.meta.hub_generation) == (0, NO_CHAIN, 9)
    assert not any(store.read(number).archived for number in (first, second, third))
    assert kinds(acknowledge_all(store)) == [
        (Created, first),
        (Created, second),
        (Residue, second),
        (Created, third),
        (Residue, third),
        (State, third),
    ]
    codec = PrefixCodec()
    assert codec.render(store.read(second).record) == store.read(second).base_text


def test_a_new_epoch_tells_again_what_was_forgotten_and_not_yet_acked(store: Store) -> None:
    first, second, third = fill(store, 3, 300)
    acknowledge_all(store)
    store.forget(first)
    acknowledge_all(store)
    store.forget(second)
    store.link.sealed()
    store.link.fenced(9)
    assert kinds(acknowledge_all(store)) == [(Created, third), (Forgotten, second)]


def test_the_outbox_and_the_batch_in_flight_are_charged(store: Store) -> None:
    fill(store, 10, 100)
    waiting = store.account.floor_bytes()
    assert waiting == 10 * 14
    body = store.link.sealed()
    assert body is not None
    assert store.account.floor_bytes() == waiting + len(body)
    acknowledge_all(store)
    assert store.account.floor_bytes() == 0


def test_room_is_kept_for_the_batch_that_will_be_sealed(tmp_path: Path) -> None:
    store = open_store(tmp_path, archive=ArchiveMode.DEMOTED)
    fill(store, 60, 500)
    store.set_budget(round(store.account.logical_bytes()))
    assert store.account.holds()
    assert not store.account.holds(store.link.reserve_bytes())
    Sweep(store, lambda: flat_pricing(store)).run()
    assert store.account.holds(store.link.reserve_bytes())
    while store.link.sealed() is not None:
        assert store.account.logical_bytes() <= store.meta.budget_bytes
        acknowledge_one(store)
    assert store.link.reserve_bytes() == 0
    store.close()


def acknowledge_one(store: Store) -> None:
    """Play a hub that takes the batch in flight."""
    body = store.link.sealed()
    assert body is not None
    batch = decode_batch(body)
    chain = next_chain(store.meta.chain, body)
    store.link.acked(Ack(store.meta.tenant, batch.epoch, batch.last_seq, chain, 1))
