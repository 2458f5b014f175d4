"""An edge that keeps its books, against a tenant's file on disk; and what a test reads from that file."""

from __future__ import annotations

import msgspec
import pytest

from hub.store import Applied, TenantStore
from shared.errors import Code, CrystalError, PermanentError, SecurityError
from shared.memory.model import Rung
from shared.scope import TenantName
from shared.wire import (
    NO_CHAIN,
    Batch,
    Delta,
    Fetch,
    Hello,
    HelloVerdict,
    Layer,
    encode_batch,
)

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


def fetched(store: TenantStore, number: int, version: int = 1) -> tuple[tuple[Layer, ...], bytes]:
    archived = store.fetch(EDGE, Fetch(TENANT, 1, number, version))
    return archived.layers, archived.original


def absent(store: TenantStore, number: int, version: int = 1, edge: str = EDGE) -> bool:
    with pytest.raises(PermanentError) as caught:
        store.fetch(edge, Fetch(TENANT, 1, number, version))
    return caught.value.code is Code.SOURCE_ABSENT


def total(store: TenantStore) -> int:
    sums = [
        store._database.query(f"SELECT coalesce(sum(length(payload)), 0) FROM {table}")[0][0]
        for table in ("layer", "original")
    ]
    return sum(sums)
