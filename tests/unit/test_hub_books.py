"""The hello table, epochs, tombstones and generations of the hub's tenant file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hub.greeting import Cursor, judge
from hub.store import TenantStore
from shared.errors import Code, IntegrityError
from shared.memory.model import Provenance, Rung
from shared.scope import tombstone_hash
from shared.wire import (
    NO_CHAIN,
    Forgotten,
    Hello,
    HelloVerdict,
    Layers,
    Residue,
    State,
)
from tests.hub_edge import (
    EDGE,
    EPOCH,
    LAYERS,
    NEW_EPOCH,
    QUOTA_BYTES,
    TENANT,
    Edge,
    entry,
    fetched,
    refusal,
    total,
)
from tests.link_harness import created, public_id


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
