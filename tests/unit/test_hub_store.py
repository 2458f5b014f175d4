"""The hub's tenant file: the hello table, exactly-once apply, archive, tombstones, generations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hub.entries import Entries, Outcome
from hub.greeting import Cursor, judge
from hub.store import Applied, TenantStore
from shared.errors import Code, CrystalError, IntegrityError, PermanentError, SecurityError
from shared.memory.model import Provenance, Rung
from shared.scope import TenantName, tombstone_hash
from shared.wire import (
    NO_CHAIN,
    Batch,
    Delta,
    Fetch,
    Forgotten,
    Hello,
    HelloVerdict,
    Layer,
    Layers,
    Residue,
    State,
    encode_batch,
    next_chain,
)
from tests.link_harness import created, digest, public_id

TENANT = TenantName("tenant-1")
EDGE = "edge-1"
EPOCH = b"e" * 16
NEW_EPOCH = b"n" * 16
QUOTA_BYTES = 1000
LAYERS = (Layer(Rung.PACKED, b"p" * 10), Layer(Rung.TRACE, b"t" * 5))


class Edge:
    """An edge that keeps its books: batches and hellos as an honest one makes them."""

    def __init__(self, store: TenantStore, name: str = EDGE, epoch: bytes = EPOCH) -> None:
        self.store, self.name, self.epoch = store, name, epoch
        self.seq = self.acked_seq = 0
        self.chain = NO_CHAIN
        self.body = b""

    def hello(self, **change: object) -> Hello:
        plain = Hello(
            1, 1, b"s" * 16, TENANT, b"b" * 16, self.epoch, self.seq, self.acked_seq, self.chain, generation=0
        )
        return msgspec.structs.replace(plain, **change)

    def greet(self, **change: object) -> HelloVerdict:
        return self.store.hello(self.name, self.hello(**change)).verdict

    def batch(self, *deltas: Delta) -> bytes:
        """The deltas with the next seqs, sealed."""
        numbered = []
        for delta in deltas:
            self.seq += 1
            numbered.append(msgspec.structs.replace(delta, seq=self.seq))
        self.body = encode_batch(Batch(self.epoch, self.acked_seq, self.seq, tuple(numbered)))
        return self.body

    def send(self, *deltas: Delta) -> Applied:
        applied = self.store.apply(self.name, self.batch(*deltas))
        self.acked_seq, self.chain = applied.ack.last_seq, applied.ack.chain
        return applied


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


def entry(store: TenantStore, number: int) -> dict[str, object]:
    names = "public_id, version, rung, overlay_rung, provenance, value, creations, residue_rung, residue"
    rows = store._database.query(f"SELECT {names} FROM entry WHERE number = ?", (number,))
    return dict(zip(names.split(", "), rows[0], strict=True)) if rows else {}


def refusal(store: TenantStore, body: bytes, kind: type[CrystalError] = SecurityError) -> Code:
    """The code with which a batch is refused; it must leave the file as it was."""
    before = list(store._database._connection.iterdump())
    with pytest.raises(kind) as caught:
        store.apply(EDGE, body)
    assert list(store._database._connection.iterdump()) == before
    return caught.value.code


# --- the hello table, as a pure decision ---------------------------------------------------------------


CURSOR = Cursor(EPOCH, seq=10, chain=b"C" * 32, prev_chain=b"P" * 32)


def _hello(acked: int, highest: int, chain: bytes, epoch: bytes = EPOCH) -> Hello:
    return Hello(1, 1, b"s" * 16, TENANT, b"b" * 16, epoch, highest, acked, chain, 0)


@pytest.mark.parametrize(
    ("case", "hello", "cursor", "retired", "verdict"),
    [
        ("first ever", _hello(0, 5, NO_CHAIN), None, False, HelloVerdict.CONTINUE),
        ("equal books", _hello(10, 10, b"C" * 32), CURSOR, False, HelloVerdict.CONTINUE),
        ("equal books, more to send", _hello(10, 30, b"C" * 32), CURSOR, False, HelloVerdict.CONTINUE),
        ("new epoch after a resync", _hello(0, 5, NO_CHAIN, NEW_EPOCH), CURSOR, False, HelloVerdict.CONTINUE),
        ("ack lost", _hello(6, 12, b"P" * 32), CURSOR, False, HelloVerdict.AHEAD),
        ("restored edge, fewer seqs", _hello(6, 9, b"P" * 32), CURSOR, False, HelloVerdict.FENCE),
        ("restored edge, wrote on", _hello(3, 40, b"O" * 32), CURSOR, False, HelloVerdict.FENCE),
        ("left epoch", _hello(0, 5, NO_CHAIN, NEW_EPOCH), CURSOR, True, HelloVerdict.FENCE),
        ("left epoch, acked", _hello(4, 5, b"O" * 32, NEW_EPOCH), CURSOR, True, HelloVerdict.FENCE),
        ("restored hub", _hello(12, 15, b"N" * 32), CURSOR, False, HelloVerdict.RESYNC),
        ("empty hub", _hello(12, 15, b"N" * 32), None, False, HelloVerdict.RESYNC),
        ("hub older than the epoch", _hello(3, 9, b"N" * 32, NEW_EPOCH), CURSOR, False, HelloVerdict.RESYNC),
        ("other digest", _hello(10, 12, b"X" * 32), CURSOR, False, HelloVerdict.ALARM),
        (
            "alarm stays",
            _hello(10, 12, b"C" * 32),
            Cursor(EPOCH, 10, b"C" * 32, b"P" * 32, b"", alarmed=True),
            False,
            HelloVerdict.ALARM,
        ),
    ],
)
def test_the_hello_table(
    case: str, hello: Hello, cursor: Cursor | None, *, retired: bool, verdict: HelloVerdict
) -> None:
    assert judge(hello, cursor, retired=retired) is verdict, case


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


def fetched(store: TenantStore, number: int, version: int = 1) -> tuple[tuple[Layer, ...], bytes]:
    archived = store.fetch(EDGE, Fetch(TENANT, 1, number, version))
    return archived.layers, archived.original


def absent(store: TenantStore, number: int, version: int = 1, edge: str = EDGE) -> bool:
    with pytest.raises(PermanentError) as caught:
        store.fetch(edge, Fetch(TENANT, 1, number, version))
    return caught.value.code is Code.SOURCE_ABSENT


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


def total(store: TenantStore) -> int:
    sums = [
        store._database.query(f"SELECT coalesce(sum(length(payload)), 0) FROM {table}")[0][0]
        for table in ("layer", "original")
    ]
    return sum(sums)


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


# --- epochs, tombstones, generations -----------------------------------------------------------------


def tombstone(number: int, *, version: int = 1) -> Forgotten:
    return Forgotten(1, number, version, tombstone_hash(TENANT, public_id(number)))


def test_forgetting_leaves_a_hash_and_nothing_else(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7, original=b"secret"), Layers(1, 7, 1, 1, LAYERS), tombstone(7))
    assert entry(store, 7) == {}
    assert total(store) == store.archive.held_bytes == 0
    edge.send(tombstone(99))  # the hub never knew it
    assert store._database.query("SELECT count(*) FROM tombstone") == [(2,)]


def test_forgotten_stays_forgotten_for_an_old_copy(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), created(2, 8), tombstone(7))
    old_copy = Edge(store, epoch=NEW_EPOCH)
    old_copy.greet()
    applied = old_copy.send(created(1, 7), created(2, 8))
    assert applied.ack.forgotten == (1,)
    assert entry(store, 7) == {}
    assert entry(store, 8)["public_id"] == public_id(8)


def test_within_an_epoch_an_id_may_be_used_again(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), tombstone(7))
    assert edge.send(created(1, 7)).ack.forgotten == ()
    assert entry(store, 7)["creations"] == 1
    again = Edge(store, epoch=NEW_EPOCH)
    again.greet()
    assert again.send(created(1, 7)).ack.forgotten == ()


def test_a_new_epoch_takes_over_what_it_creates_and_the_rest_stays_a_source(
    store: TenantStore, edge: Edge
) -> None:
    edge.send(created(1, 7), created(2, 8), Residue(1, 7, 1, Rung.TRACE, 1, b"r"), Layers(1, 8, 1, 1, LAYERS))
    again = Edge(store, epoch=NEW_EPOCH)
    again.greet()
    again.send(created(1, 7))
    row = entry(store, 7)
    assert (row["creations"], row["residue"]) == (1, b"r")  # equal digests are kept
    assert store._database.query("SELECT number FROM entry WHERE epoch = ?", (NEW_EPOCH,)) == [(7,)]
    assert fetched(store, 8) == (LAYERS, b"")  # the edge may have it as a stub


def test_a_forgotten_entry_does_not_lend_its_number_to_another(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7), tombstone(7), msgspec.structs.replace(created(1, 9), number=7))
    old_copy = Edge(store, epoch=NEW_EPOCH)
    old_copy.greet()
    applied = old_copy.send(created(1, 7), State(1, 7, 1, Rung.TRACE, Rung.TRACE, Provenance.EXACT, 0.1))
    assert (applied.ack.forgotten, applied.skipped) == ((1,), 1)
    assert entry(store, 7) == {}


def test_an_epoch_that_was_left_is_fenced_and_suspected(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    assert Edge(store, epoch=NEW_EPOCH).greet() is HelloVerdict.CONTINUE
    standing = store.hello(EDGE, edge.hello())
    assert (standing.verdict, standing.retired) == (HelloVerdict.FENCE, True)
    assert refusal(store, edge.batch(created(1, 8))) is Code.STALE_EPOCH


def test_a_hub_that_lost_its_tail_raises_its_generation(store: TenantStore, edge: Edge) -> None:
    before = store.generation
    edge.send(created(1, 7))
    standing = store.hello(EDGE, edge.hello(acked_seq=5, highest_seq=5))
    assert standing.verdict is HelloVerdict.RESYNC
    assert standing.generation == store.generation == before + 1
    assert store.apply(EDGE, edge.body).ack.generation == before + 1


def test_a_lost_ack_is_seen_and_given_again(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    before = edge.hello()
    ack = store.apply(EDGE, edge.batch(created(1, 8), Layers(1, 9, 1, 1, LAYERS))).ack
    standing = store.hello(EDGE, msgspec.structs.replace(before, highest_seq=3))
    assert (standing.verdict, standing.cursor) == (HelloVerdict.AHEAD, 3)
    assert store.apply(EDGE, edge.body).ack == ack
    assert ack.not_archived == (3,)


def test_an_alarm_stops_the_stream_until_a_new_epoch(store: TenantStore, edge: Edge) -> None:
    edge.send(created(1, 7))
    assert edge.greet(chain=b"?" * 32) is HelloVerdict.ALARM
    assert edge.greet() is HelloVerdict.ALARM
    assert refusal(store, edge.batch(created(1, 8)), IntegrityError) is Code.CHAIN_MISMATCH
    assert Edge(store, epoch=NEW_EPOCH).greet() is HelloVerdict.CONTINUE


def test_edges_of_one_tenant_keep_their_own_books(store: TenantStore, edge: Edge) -> None:
    other = Edge(store, name="edge-2", epoch=NEW_EPOCH)
    assert other.greet() is HelloVerdict.CONTINUE
    edge.send(created(1, 7))
    other.send(msgspec.structs.replace(created(1, 7), public_id=public_id(70)))
    rows = store._database.query("SELECT edge, number FROM entry ORDER BY edge")
    assert rows == [("edge-1", 7), ("edge-2", 7)]
    assert edge.greet() is HelloVerdict.CONTINUE
