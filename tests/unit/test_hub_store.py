"""The hub's tenant file: exactly-once apply, deltas, archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hub.entries import Entries, Outcome
from hub.store import TenantStore
from shared.errors import Code, IntegrityError
from shared.memory.model import Provenance, Rung
from shared.scope import TenantName
from shared.wire import (
    NO_CHAIN,
    Batch,
    Delta,
    Fetch,
    HelloVerdict,
    Layer,
    Layers,
    Residue,
    State,
    encode_batch,
    next_chain,
)
from tests.hub_edge import (
    EDGE,
    EPOCH,
    LAYERS,
    NEW_EPOCH,
    QUOTA_BYTES,
    TENANT,
    Edge,
    absent,
    entry,
    fetched,
    refusal,
    total,
)
from tests.link_harness import created, digest, public_id


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TenantStore]:
    store = TenantStore(tmp_path, TENANT, QUOTA_BYTES)
    yield store
    store.close()


@pytest.fixture
def edge(store: TenantStore) -> Edge:
    edge = Edge(store)
    assert edge.greet() is HelloVerdict.CONTINUE
    return edge


# --- exactly once ------------------------------------------------------------------------------------


def test_a_batch_is_applied_once_and_its_ack_names_cursor_and_chain(store: TenantStore, edge: Edge) -> None:
    applied = edge.send(created(1, 7), created(2, 8))
    assert (applied.deltas, applied.replayed) == (2, False)
    assert applied.ack.last_seq == 2
    assert applied.ack.chain == next_chain(NO_CHAIN, edge.body)
    assert applied.ack.epoch == EPOCH
    assert entry(store, 7)["creations"] == 1


def test_a_replay_is_acked_as_before_and_applied_zero_times(store: TenantStore, edge: Edge) -> None:
    first = edge.send(created(1, 7), Layers(1, 9, 1, 1, LAYERS))
    assert first.ack.not_archived == (2,)  # entry 9 is unknown
    again = store.apply(EDGE, edge.body)
    assert (again.ack, again.deltas, again.replayed) == (first.ack, 0, True)
    assert entry(store, 7)["creations"] == 1


def test_a_replay_of_an_older_batch_says_where_the_cursor_is(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    old = edge.body
    edge.send(created(1, 8))
    again = store.apply(EDGE, old)
    assert (again.ack.last_seq, again.deltas, again.replayed) == (2, 0, True)


def test_a_clone_with_the_same_seqs_is_not_acked(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    clone = encode_batch(Batch(EPOCH, 0, 1, (created(1, 99),)))
    assert refusal(store, clone) is Code.CHAIN_MISMATCH
    assert entry(store, 99) == {}


def test_a_gap_an_overlap_and_another_epoch_are_refused(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), created(2, 8))
    gap = encode_batch(Batch(EPOCH, 5, 6, (created(6, 9),)))
    overlap = encode_batch(Batch(EPOCH, 1, 3, (created(2, 8), created(3, 9))))
    stale = encode_batch(Batch(NEW_EPOCH, 2, 3, (created(3, 9),)))
    assert [refusal(store, body) for body in (gap, overlap, stale)] == [Code.GAP, Code.GAP, Code.STALE_EPOCH]


def test_a_batch_before_any_hello_is_refused(store: TenantStore) -> None:
    assert refusal(store, Edge(store).batch(created(1, 7))) is Code.STALE_EPOCH


def test_a_failure_in_the_middle_of_a_batch_leaves_nothing(
    store: TenantStore, edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge.send(created(1, 7))
    body = edge.batch(created(2, 8), created(3, 9))
    apply = Entries.apply

    def failing(self: Entries, edge: str, epoch: bytes, delta: Delta, outcome: Outcome) -> None:
        if delta.number == 9:
            raise RuntimeError("power cut")
        apply(self, edge, epoch, delta, outcome)

    monkeypatch.setattr(Entries, "apply", failing)
    with pytest.raises(RuntimeError, match="power cut"):
        store.apply(EDGE, body)
    assert entry(store, 8) == {}
    monkeypatch.setattr(Entries, "apply", apply)
    assert store.apply(EDGE, body).deltas == 2


def test_what_is_acked_survives_a_new_process(tmp_path: Path, store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    other = TenantStore(tmp_path, TENANT, QUOTA_BYTES)
    try:
        assert entry(other, 7)["public_id"] == public_id(7)
        assert other.apply(EDGE, edge.body).replayed
    finally:
        other.close()


def test_a_file_of_another_tenant_is_not_used(tmp_path: Path, store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    store._database.shrink()
    (tmp_path / "tenant-2.db").write_bytes((tmp_path / "tenant-1.db").read_bytes())
    with pytest.raises(IntegrityError) as caught:
        TenantStore(tmp_path, TenantName("tenant-2"), QUOTA_BYTES)
    assert caught.value.code is Code.WRONG_TENANT_STORE


# --- deltas --------------------------------------------------------------------------------------------


def test_rungs_residues_and_states_follow_the_deltas(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), Residue(1, 7, 1, Rung.SKELETAL, 1, b"residue"))
    row = entry(store, 7)
    assert (row["rung"], row["overlay_rung"], row["residue"]) == (Rung.SKELETAL, Rung.SKELETAL, b"residue")
    assert row["provenance"] == Provenance.EXACT.value
    edge.send(State(1, 7, 1, Rung.SKELETAL, Rung.COMPRESSED, Provenance.REGENERATED, 0.75))
    row = entry(store, 7)
    assert (row["rung"], row["overlay_rung"]) == (Rung.SKELETAL, Rung.COMPRESSED)
    assert (row["provenance"], row["value"]) == ("regenerated", 0.75)
    assert row["residue"] == b"residue"


def test_a_delta_of_an_unknown_entry_or_another_version_is_skipped_and_counted(
    store: TenantStore, edge: Edge
) -> None:
    applied = edge.send(
        created(1, 7, version=2),
        Residue(1, 7, 1, Rung.TRACE, 1, b"old"),
        State(1, 99, 1, Rung.FULL, Rung.FULL, Provenance.ORIGINAL, 0.5),
        Layers(1, 7, 1, 1, LAYERS),
    )
    assert applied.skipped == 3
    assert applied.ack.not_archived == (4,)
    assert entry(store, 7)["residue"] is None


def test_a_new_version_drops_what_the_old_one_left(store: TenantStore, edge: Edge) -> None:
    edge.send(
        created(1, 7, original=b"o" * 9), Layers(1, 7, 1, 1, LAYERS), Residue(1, 7, 1, Rung.TRACE, 1, b"r")
    )
    assert store.archive.held_bytes == 24
    edge.send(created(1, 7, version=2, text="new"))
    assert store.archive.held_bytes == 0
    row = entry(store, 7)
    assert (row["version"], row["rung"], row["residue"], row["creations"]) == (2, Rung.FULL, None, 1)


def test_a_number_names_one_entry(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    edge.send(msgspec.structs.replace(created(1, 7), public_id=public_id(70)))
    assert entry(store, 7)["public_id"] == public_id(70)
    assert store._database.query("SELECT count(*) FROM entry WHERE number IS NULL") == [(1,)]


def test_a_second_application_would_show(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    edge.send(created(1, 7))
    assert entry(store, 7)["creations"] == 2


# --- archive ----------------------------------------------------------------------------------------------


def test_layers_come_back_with_everything_that_a_stub_needs(store: TenantStore, edge: Edge) -> None:
    whole = msgspec.structs.replace(created(1, 7), links=(3, 2**32 - 1))
    edge.send(whole, Layers(1, 7, 1, 4, LAYERS[1:]), Layers(1, 7, 1, 4, LAYERS[:1]))
    archived = store.fetch(EDGE, Fetch(TENANT, 11, 7, 1))
    assert archived.request == 11
    assert archived.layers == LAYERS
    assert archived.levelling == 4
    assert (archived.public_id, archived.digest, archived.links) == (
        public_id(7),
        digest("7"),
        (3, 2**32 - 1),
    )
    assert (archived.kind, archived.created_wall_ns) == (whole.kind, whole.created_wall_ns)


def test_the_original_answers_for_its_layers(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7, original=b"whole"), Layers(1, 7, 1, 1, LAYERS))
    assert fetched(store, 7) == ((), b"whole")


def test_what_is_not_held_is_absent(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), created(2, 8), Layers(1, 8, 1, 1, LAYERS))
    assert absent(store, 7)  # nothing archived
    assert absent(store, 8, version=2)
    assert absent(store, 9)
    assert absent(store, 8, edge="edge-2")  # another edge's numbers are its own
    assert fetched(store, 8) == (LAYERS, b"")


def test_over_quota_is_named_in_the_ack_and_changes_nothing(store: TenantStore, edge: Edge) -> None:
    big = (Layer(Rung.TRACE, b"x" * (QUOTA_BYTES - 20)),)
    applied = edge.send(
        created(1, 7),
        created(2, 8, original=b"o" * (QUOTA_BYTES + 1)),
        Layers(3, 7, 1, 1, big),
        Layers(4, 8, 1, 1, (*LAYERS, )),
        Layers(5, 8, 1, 1, (Layer(Rung.COMPRESSED, b"c" * 6),)),
    )  # fmt: skip
    assert applied.ack.not_archived == (2, 5)
    assert store.archive.held_bytes == QUOTA_BYTES - 20 + 15
    assert fetched(store, 8) == (LAYERS, b"")


def test_the_same_layers_twice_are_charged_once(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7, original=b"o" * 4), Layers(1, 7, 1, 1, LAYERS))
    edge.send(created(1, 7, original=b"o" * 4), Layers(1, 7, 1, 1, LAYERS))
    assert store.archive.held_bytes == 19 == total(store)


def test_a_full_archive_still_shrinks(tmp_path: Path) -> None:
    store = TenantStore(tmp_path, TENANT, 15)
    edge = Edge(store)
    edge.greet()
    edge.send(created(1, 7), Layers(1, 7, 1, 1, LAYERS))
    store.close()
    smaller = TenantStore(tmp_path, TENANT, 5)  # the operator lowered the quota
    edge.store = smaller
    edge.send(created(1, 7, version=2))
    assert smaller.archive.held_bytes == 0
    smaller.close()


def test_levels_are_frozen_by_the_first_layer_within_an_epoch(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), Layers(1, 7, 1, 1, LAYERS[:1]))
    other = edge.send(Layers(1, 7, 1, 2, LAYERS[1:]))
    assert other.ack.not_archived == (3,)
    assert fetched(store, 7) == (LAYERS[:1], b"")


def test_a_new_epoch_may_level_anew(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), Layers(1, 7, 1, 1, LAYERS[:1]))
    again = Edge(store, epoch=NEW_EPOCH)
    assert again.greet() is HelloVerdict.CONTINUE
    applied = again.send(created(1, 7), Layers(1, 7, 1, 2, LAYERS[1:]))
    assert applied.ack.not_archived == ()
    assert fetched(store, 7) == (LAYERS[1:], b"")
    assert store.archive.held_bytes == 5 == total(store)
