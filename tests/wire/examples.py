"""One of every message, with values that a change of order, type or tag would disturb."""

from __future__ import annotations

from msgspec import Struct

from shared import wire
from shared.memory.model import Kind, MemoryClass, Provenance, Rung

ID = bytes(range(16))
DIGEST = bytes(range(16, 32))
EPOCH = b"\xee" * 16
CHAIN = b"\xcc" * 32

CREATED = wire.Created(
    seq=1, number=2, public_id=ID, version=3, kind=Kind.EPISODE, memory_class=MemoryClass.NONE,
    created_wall_ns=1_700_000_000_000_000_000, digest=DIGEST, value=0.25, text_bytes=1200,
    links=(7, 2**32 - 1), original=b"packed",
)  # fmt: skip
RESIDUE = wire.Residue(seq=2, number=2, version=3, rung=Rung.SKELETAL, levelling=1, payload=b"residue")
LAYERS = wire.Layers(
    seq=3, number=2, version=3, levelling=1,
    layers=(wire.Layer(Rung.PACKED, b"one"), wire.Layer(Rung.TRACE, b"two")),
)  # fmt: skip
STATE = wire.State(
    seq=4, number=2, version=3, rung=Rung.SKELETAL, overlay_rung=Rung.COMPRESSED,
    provenance=Provenance.REGENERATED, value=-1.5,
)  # fmt: skip
FORGOTTEN = wire.Forgotten(seq=9, number=2, version=3, tombstone=DIGEST)
BATCH = wire.Batch(EPOCH, 0, 9, (CREATED, RESIDUE, LAYERS, STATE, FORGOTTEN))

FROM_EDGE: dict[str, wire.EdgeMessage] = {
    "hello": wire.Hello(
        protocol_min=1, protocol_max=1, schema_hash=ID, tenant="tenant-1", boot_id=DIGEST, epoch=EPOCH,
        highest_seq=9, acked_seq=4, chain=CHAIN, generation=1,
    ),
    "batch": wire.batch_message("tenant-1", wire.encode_batch(BATCH)),
    "fetch": wire.Fetch("tenant-1", 5, 2, 3),
    "draft_ask": wire.DraftAsk(
        tenant="tenant-1", request=6, number=2, version=3, base_digest=DIGEST, origin=Rung.SKELETAL,
        target=Rung.COMPRESSED, kind=Kind.MEMORY, record=b"record", residue="the résumé",
        invariants=("a", "b"), neighbours=("n",), max_tokens=512, stage=3, serving_tokens=1000,
        cap_tokens=100,
    ),
    "ping": wire.Ping("tenant-1"),
}  # fmt: skip
FROM_HUB: dict[str, wire.HubMessage] = {
    "welcome": wire.Welcome(1, 2, 9, CHAIN, generates=True, verdict=wire.HelloVerdict.AHEAD),
    "ack": wire.Ack("tenant-1", EPOCH, 9, CHAIN, 2, (3,), (1,)),
    "archived": wire.Archived(
        request=5, number=2, public_id=ID, version=3, kind=Kind.EPISODE, memory_class=MemoryClass.NONE,
        created_wall_ns=7, digest=DIGEST, links=(7,), layers=(wire.Layer(Rung.TRACE, b"two"),), levelling=1,
        original=b"",
    ),
    "draft_reply": wire.DraftReply(6, "text", "model-1", 321, ""),
    "refused": wire.Refused(5, "source_absent", "the archive does not hold this"),
    "pong": wire.Pong(),
}  # fmt: skip
BODIES: dict[str, wire.Batch] = {
    "created": wire.Batch(EPOCH, 0, 1, (CREATED,)),
    "residue": wire.Batch(EPOCH, 1, 2, (RESIDUE,)),
    "layers": wire.Batch(EPOCH, 2, 3, (LAYERS,)),
    "state": wire.Batch(EPOCH, 3, 4, (STATE,)),
    "forgotten": wire.Batch(EPOCH, 4, 9, (FORGOTTEN,)),
}


def frame(name: str, example: Struct) -> bytes:
    """The bytes of an example."""
    if name in BODIES:
        return wire.encode_batch(BODIES[name])
    assert isinstance(example, (*FROM_EDGE_TYPES, *FROM_HUB_TYPES))
    return wire.encode(example)


FROM_EDGE_TYPES = tuple({type(message) for message in FROM_EDGE.values()})
FROM_HUB_TYPES = tuple({type(message) for message in FROM_HUB.values()})
ALL: dict[str, Struct] = {**FROM_EDGE, **FROM_HUB, **BODIES}
