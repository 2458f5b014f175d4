"""Admitted drafts on the hub's disk: found by base and rung, gone with their entry, the oldest out first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hub.drafts import KeptDraft
from hub.store import TenantStore
from shared.memory.model import Kind, Rung
from shared.scope import tombstone_hash
from shared.wire import DraftAsk, Forgotten
from tests.hub_edge import EDGE, TENANT, Edge
from tests.link_harness import created, public_id

ASK = DraftAsk(
    TENANT, 1, 7, 1, b"d" * 16, Rung.SKELETAL, Rung.COMPRESSED, Kind.EPISODE, b"record",
    "residue", (), (), 100, stage=3, serving_tokens=10, cap_tokens=10,
)  # fmt: skip
DRAFT = KeptDraft("A text.", "m", 40, 3, judged=False)
MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TenantStore]:
    store = TenantStore(tmp_path, TENANT, 0)
    Edge(store).greet()
    yield store
    store.close()


@pytest.fixture
def edge(store: TenantStore) -> Edge:
    edge = Edge(store)
    edge.send(created(1, 7), created(2, 8))
    return edge


def other(**change: object) -> DraftAsk:
    return msgspec.structs.replace(ASK, **change)


def count(store: TenantStore) -> int:
    return int(store._database.query("SELECT count(*) FROM draft")[0][0])


def test_a_draft_is_found_for_its_base_and_rung_alone(store: TenantStore, edge: Edge) -> None:
    assert store.kept_draft(EDGE, ASK) is None
    assert store.keep_draft(EDGE, ASK, DRAFT)
    assert store.kept_draft(EDGE, other(request=9, stage=12, residue="said otherwise")) == DRAFT
    changes = ({"number": 8}, {"version": 2}, {"base_digest": b"e" * 16}, {"target": Rung.FULL})
    assert [store.kept_draft(EDGE, other(**change)) for change in changes] == [None] * 4
    assert store.kept_draft("edge-2", ASK) is None


def test_a_draft_of_an_unknown_entry_is_not_kept(store: TenantStore, edge: Edge) -> None:
    """It could not be forgotten with it."""
    assert not store.keep_draft(EDGE, other(number=99), DRAFT)
    assert not store.keep_draft("edge-2", ASK, DRAFT)
    assert count(store) == 0


def test_a_draft_goes_with_its_entry_its_version_and_its_number(store: TenantStore, edge: Edge) -> None:
    store.keep_draft(EDGE, ASK, DRAFT)
    edge.send(Forgotten(1, 7, 1, tombstone_hash(TENANT, public_id(7))))
    assert count(store) == 0
    store.keep_draft(EDGE, other(number=8), DRAFT)
    edge.send(created(1, 8, version=2, text="new"))
    assert count(store) == 0
    store.keep_draft(EDGE, other(number=8, version=2), DRAFT)
    edge.send(msgspec.structs.replace(created(1, 9), number=8))  # the number goes to another entry
    assert store.kept_draft(EDGE, other(number=8, version=2)) is None


def test_the_oldest_go_when_they_outgrow_their_share(store: TenantStore, edge: Edge) -> None:
    third = KeptDraft("é" * (MIB // 6), "m", 40, 3, judged=False)  # two bytes each
    for target in (Rung.FULL, Rung.COMPRESSED, Rung.SKELETAL):
        store.keep_draft(EDGE, other(target=target), third)
    assert count(store) == 3
    store.keep_draft(EDGE, other(number=8), third)
    assert store.kept_draft(EDGE, other(target=Rung.FULL)) is None
    assert store.kept_draft(EDGE, other(target=Rung.COMPRESSED)) == third
    store.keep_draft(EDGE, other(target=Rung.COMPRESSED), third)  # the newest now
    store.keep_draft(EDGE, other(number=8, target=Rung.FULL), third)
    assert store.kept_draft(EDGE, other(target=Rung.COMPRESSED)) == third
    assert not store.keep_draft(EDGE, ASK, KeptDraft("x" * (MIB + 1), "m", 1, 3, judged=False))
    assert count(store) == 3
