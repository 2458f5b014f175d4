"""The messages between edge and hub as frozen structs, every field bounded. Import them from shared.wire."""

from __future__ import annotations

import math
from enum import Enum, IntEnum
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from shared.memory.model import Kind, MemoryClass, Provenance, Rung
from shared.scope import NAME_PATTERN
from shared.units import KIB, MIB

MAX_MESSAGE_BYTES = 4 * MIB
MAX_PAYLOAD_BYTES = 2 * MIB
"""One packed record, layer or original: the door takes at most 1 MiB of text."""
MAX_BATCH_BYTES = MAX_MESSAGE_BYTES - 4 * KIB
BATCH_TARGET_BYTES = 256 * KIB
"""One hub fsync pays for this much (runtime.md 3.1); a single larger delta travels alone."""
BATCH_TARGET_DELTAS = 64

# msgspec takes 2^64-1 as an int: every integer has a bound, each of which fits a SQLite column.
Seq = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Cursor = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Version = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Levelling = Annotated[int, Meta(ge=0, le=2**16 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**40)]
Generation = Annotated[int, Meta(ge=0, le=2**31 - 1)]
RequestId = Annotated[int, Meta(ge=1, le=2**32 - 1)]
WallNs = Annotated[int, Meta(ge=0, le=2**63 - 1)]
ProtocolNumber = Annotated[int, Meta(ge=1, le=255)]
Bytes16 = Annotated[bytes, Meta(min_length=16, max_length=16)]
Bytes32 = Annotated[bytes, Meta(min_length=32, max_length=32)]
Payload = Annotated[bytes, Meta(min_length=1, max_length=MAX_PAYLOAD_BYTES)]
MaybePayload = Annotated[bytes, Meta(max_length=MAX_PAYLOAD_BYTES)]
Body = Annotated[bytes, Meta(min_length=1, max_length=MAX_BATCH_BYTES)]
Tenant = Annotated[str, Meta(pattern=NAME_PATTERN)]
ShortText = Annotated[str, Meta(max_length=512)]
LongText = Annotated[str, Meta(max_length=MAX_PAYLOAD_BYTES)]
Links = Annotated[tuple[Number, ...], Meta(max_length=1024)]
Seqs = Annotated[tuple[Seq, ...], Meta(max_length=1024)]


class HelloVerdict(IntEnum):
    """The hub's answer to a hello (runtime.md 2.3)."""

    CONTINUE = 0
    AHEAD = 1
    """The hub has more than the edge has seen acked: an ack was lost."""
    FENCE = 2
    """The edge runs from an old copy: new epoch, full resync."""
    RESYNC = 3
    """The hub has lost its tail: new epoch, snapshot."""
    ALARM = 4
    """Same cursor, other digest: both sides stop and keep their evidence."""


# --- deltas -----------------------------------------------------------------------------------------


class Layer(Struct, frozen=True, array_like=True):
    """Self-contained bytes of the spans that `rung_above` has and the next rung down has not."""

    rung_above: Rung
    payload: Payload


Layers_ = Annotated[tuple[Layer, ...], Meta(max_length=8)]


class Created(Struct, frozen=True, array_like=True, tag=1):
    """A new entry, or a new version of one. `original` only in archive mode `always`."""

    seq: Seq
    number: Number
    public_id: Bytes16
    version: Version
    kind: Kind
    memory_class: MemoryClass
    created_wall_ns: WallNs
    digest: Bytes16
    value: float
    text_bytes: Count
    links: Links = ()
    original: MaybePayload = b""

    def __post_init__(self) -> None:
        _finite(self.value)


class Residue(Struct, frozen=True, array_like=True, tag=2):
    """The exact base of an entry that went to a lossy rung."""

    seq: Seq
    number: Number
    version: Version
    rung: Rung
    levelling: Levelling
    payload: Payload


class Layers(Struct, frozen=True, array_like=True, tag=3):
    """Layers that left the edge or soon will, shallowest first; acked, they are a source."""

    seq: Seq
    number: Number
    version: Version
    levelling: Levelling
    layers: Annotated[tuple[Layer, ...], Meta(min_length=1, max_length=8)]

    def __post_init__(self) -> None:
        rungs = [layer.rung_above for layer in self.layers]
        if any(above >= below for above, below in pairwise(rungs)):
            raise ValueError("layers must go down the ladder, each once")


class State(Struct, frozen=True, array_like=True, tag=4):
    """Promotion, overlay, eviction or change of value. `overlay_rung` = `rung` where there is no overlay."""

    seq: Seq
    number: Number
    version: Version
    rung: Rung
    overlay_rung: Rung
    provenance: Provenance
    value: float

    def __post_init__(self) -> None:
        _finite(self.value)


class Forgotten(Struct, frozen=True, array_like=True, tag=5):
    """The entry is gone for good; `tombstone` is scope.tombstone_hash."""

    seq: Seq
    number: Number
    version: Version
    tombstone: Bytes16


Delta = Created | Residue | Layers | State | Forgotten


class Batch(Struct, frozen=True, array_like=True):
    """What one ack covers. Sealed once, sent again unchanged until acked."""

    epoch: Bytes16
    prev_seq: Cursor
    last_seq: Seq
    deltas: Annotated[tuple[Delta, ...], Meta(min_length=1, max_length=BATCH_TARGET_DELTAS)]

    def __post_init__(self) -> None:
        seq = self.prev_seq
        for delta in self.deltas:
            if delta.seq <= seq:
                raise ValueError("seqs of a batch must rise")
            seq = delta.seq
        if seq != self.last_seq:
            raise ValueError("last_seq must be that of the last delta")


# --- edge to hub ------------------------------------------------------------------------------------


class Hello(Struct, frozen=True, array_like=True, tag=16):
    """Where the edge stands. `generation` is the hub's, as the edge last heard it (0 = never)."""

    protocol_min: ProtocolNumber
    protocol_max: ProtocolNumber
    schema_hash: Bytes16
    tenant: Tenant
    boot_id: Bytes16
    epoch: Bytes16
    highest_seq: Cursor
    acked_seq: Cursor
    chain: Bytes32
    generation: Generation


class BatchMessage(Struct, frozen=True, array_like=True, tag=17):
    """An encoded Batch and its digest."""

    tenant: Tenant
    body: Body
    sha256: Bytes32


class Fetch(Struct, frozen=True, array_like=True, tag=18):
    """Ask the archive for an entry."""

    tenant: Tenant
    request: RequestId
    number: Number
    version: Version


class DraftAsk(Struct, frozen=True, array_like=True, tag=19):
    """Ask the model for a draft. `record` is the base the gate reads; the hub may not hold it."""

    tenant: Tenant
    request: RequestId
    number: Number
    version: Version
    base_digest: Bytes16
    origin: Rung
    target: Rung
    kind: Kind
    record: Payload
    residue: LongText
    invariants: Annotated[tuple[LongText, ...], Meta(max_length=1024)]
    neighbours: Annotated[tuple[LongText, ...], Meta(max_length=16)]
    max_tokens: Annotated[int, Meta(ge=1, le=2**20)]
    stage: Count
    serving_tokens: Count
    cap_tokens: Count


class Ping(Struct, frozen=True, array_like=True, tag=20):
    """Are you there? Also keeps the session live at the hub."""

    tenant: Tenant


# --- hub to edge ------------------------------------------------------------------------------------


class Welcome(Struct, frozen=True, array_like=True, tag=32):
    """The hub's cursor for this edge and tenant, and what the edge must do about it."""

    protocol: ProtocolNumber
    generation: Generation
    cursor: Cursor
    chain: Bytes32
    generates: bool
    verdict: HelloVerdict


class Ack(Struct, frozen=True, array_like=True, tag=33):
    """Sent after the hub's durable commit. `not_archived`: seqs whose bytes the hub did not keep.

    `forgotten`: seqs of entries that the hub knows as forgotten (after a restore); they stay forgotten.
    """

    tenant: Tenant
    epoch: Bytes16
    last_seq: Cursor
    chain: Bytes32
    generation: Generation
    not_archived: Seqs = ()
    forgotten: Seqs = ()


class Archived(Struct, frozen=True, array_like=True, tag=34):
    """ports.ArchivedEntry on the wire."""

    request: RequestId
    number: Number
    public_id: Bytes16
    version: Version
    kind: Kind
    memory_class: MemoryClass
    created_wall_ns: WallNs
    digest: Bytes16
    links: Links
    layers: Layers_
    levelling: Levelling
    original: MaybePayload = b""


class DraftFailure(str, Enum):
    """Why there is no draft, before any gate looked. A rejection is the gate's own reason, same field."""

    NO_MODEL = "no_model"
    BUSY = "busy"
    OVER_CAP = "over_cap"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    HTTP_ERROR = "http_error"
    BAD_REPLY = "bad_reply"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    NOT_FINISHED = "not_finished"
    RATE_LIMITED = "rate_limited"
    """The endpoint asked to be left alone for a while (429, or 503 with Retry-After)."""
    WRONG_MODEL = "wrong_model"
    """Another model answered than the one that was asked for."""
    TOO_LONG = "too_long"
    """Residue and facts alone are over the hub's cap for a prompt."""
    THIN = "thin"
    """The draft holds less than the residue that it would cover."""
    ALREADY_CHARGED = "already_charged"
    """This base was drafted for in this stage and charged; it is not drafted for again."""


class DraftReply(Struct, frozen=True, array_like=True, tag=35):
    """A draft that passed the hub's gate, or why there is none; tokens are charged either way."""

    request: RequestId
    text: LongText
    model: ShortText
    tokens: Count
    failure: ShortText = ""
    judged: bool = False
    """The gate's rules could not decide, and the hub's judge said yes."""


class Refused(Struct, frozen=True, array_like=True, tag=36):
    """`request` 0: not an answer to a request. `code` is a shared.errors.Code, of this or a later release."""

    request: Annotated[int, Meta(ge=0, le=2**32 - 1)]
    code: Annotated[str, Meta(max_length=64)]
    message: ShortText


class Pong(Struct, frozen=True, array_like=True, tag=37):
    """Here."""


EdgeMessage = Hello | BatchMessage | Fetch | DraftAsk | Ping
HubMessage = Welcome | Ack | Archived | DraftReply | Refused | Pong


def _finite(value: float) -> None:
    if not math.isfinite(value):
        raise ValueError("not a finite number")
