"""The link's bytes: the one door through which messages are built, encoded and decoded.

A frame is one version byte and one MessagePack array `[tag, field, ...]`. Fields are only ever appended.
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec
from msgspec import Struct

from shared.errors import Code, PermanentError, SecurityError
from shared.messages import (
    BATCH_TARGET_BYTES,
    BATCH_TARGET_DELTAS,
    MAX_BATCH_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_PAYLOAD_BYTES,
    Ack,
    Archived,
    Batch,
    BatchMessage,
    Created,
    Delta,
    DraftAsk,
    DraftFailure,
    DraftReply,
    EdgeMessage,
    Fetch,
    Forgotten,
    Hello,
    HelloVerdict,
    HubMessage,
    Layer,
    Layers,
    Ping,
    Pong,
    Refused,
    Residue,
    State,
    Welcome,
)

__all__ = [
    "BATCH_TARGET_BYTES",
    "BATCH_TARGET_DELTAS",
    "MAX_BATCH_BYTES",
    "MAX_MESSAGE_BYTES",
    "MAX_PAYLOAD_BYTES",
    "NO_CHAIN",
    "PROTOCOL",
    "Ack",
    "Archived",
    "Batch",
    "BatchMessage",
    "Created",
    "Delta",
    "DraftAsk",
    "DraftFailure",
    "DraftReply",
    "EdgeMessage",
    "Fetch",
    "Forgotten",
    "Hello",
    "HelloVerdict",
    "HubMessage",
    "Layer",
    "Layers",
    "Ping",
    "Pong",
    "Refused",
    "Residue",
    "State",
    "Welcome",
    "batch_message",
    "body_digest",
    "decode_ack",
    "decode_batch",
    "decode_from_edge",
    "decode_from_hub",
    "encode",
    "encode_batch",
    "next_chain",
    "schema_hash",
]

PROTOCOL = 1
NO_CHAIN = bytes(32)
"""The chain digest at the start of an epoch."""

_T = TypeVar("_T")
_encoder = msgspec.msgpack.Encoder()
_edge_decoder = msgspec.msgpack.Decoder(EdgeMessage)
_hub_decoder = msgspec.msgpack.Decoder(HubMessage)
_any_decoder = msgspec.msgpack.Decoder(EdgeMessage | HubMessage)
_batch_decoder = msgspec.msgpack.Decoder(Batch)


def encode(message: EdgeMessage | HubMessage) -> bytes:
    """A frame for the other side; PermanentError(TOO_LARGE | MALFORMED) rather than one it must refuse."""
    return _framed(message, _any_decoder, MAX_MESSAGE_BYTES)


def encode_batch(batch: Batch) -> bytes:
    """The body of a BatchMessage: what is sealed, digested and chained."""
    return _framed(batch, _batch_decoder, MAX_BATCH_BYTES)


def decode_from_edge(frame: bytes) -> EdgeMessage:
    """SecurityError(MALFORMED | TOO_LARGE | UNSUPPORTED_VERSION), nothing else, whatever the bytes."""
    return _decoded(_edge_decoder, frame, MAX_MESSAGE_BYTES)


def decode_from_hub(frame: bytes) -> HubMessage:
    """As decode_from_edge, for the other direction."""
    return _decoded(_hub_decoder, frame, MAX_MESSAGE_BYTES)


def decode_batch(body: bytes) -> Batch:
    """As decode_from_edge, for the body of a BatchMessage."""
    return _decoded(_batch_decoder, body, MAX_BATCH_BYTES)


def decode_ack(frame: bytes) -> Ack:
    """An ack that was kept; SecurityError(MALFORMED) when the frame is anything else."""
    message = decode_from_hub(frame)
    if not isinstance(message, Ack):
        raise SecurityError(Code.MALFORMED, "the frame is not an ack")
    return message


def batch_message(tenant: str, body: bytes) -> BatchMessage:
    """A sealed body, ready to send."""
    return BatchMessage(tenant, body, body_digest(body))


def body_digest(body: bytes) -> bytes:
    """What a BatchMessage's `sha256` must be."""
    return hashlib.sha256(body).digest()


def next_chain(chain: bytes, body: bytes) -> bytes:
    """The chain digest after `body`: covers everything sent in this epoch."""
    return hashlib.sha256(chain + body).digest()


def schema_hash() -> bytes:
    """Names every field of every message, so that a hello can tell two builds apart."""
    digest = hashlib.blake2b(digest_size=16)
    for struct in _SCHEMA:
        fields = ",".join(f"{name}:{struct.__annotations__[name]}" for name in struct.__struct_fields__)
        digest.update(f"{struct.__name__}[{struct.__struct_config__.tag}]({fields});".encode())
    return digest.digest()


_SCHEMA: tuple[type[Struct], ...] = (
    *(Created, Residue, Layers, State, Forgotten, Layer, Batch),
    *(Hello, BatchMessage, Fetch, DraftAsk, Ping),
    *(Welcome, Ack, Archived, DraftReply, Refused, Pong),
)


def _framed(message: Struct, decoder: msgspec.msgpack.Decoder[_T], limit: int) -> bytes:
    frame = bytes([PROTOCOL]) + _encoder.encode(message)
    try:
        # Structs are checked when decoded only; a sealed batch that the hub must refuse would never go away.
        _decoded(decoder, frame, limit)
    except SecurityError as error:
        raise PermanentError(error.code, "a message is not fit to send", reason=str(error)) from error
    return frame


def _decoded(decoder: msgspec.msgpack.Decoder[_T], frame: bytes, limit: int) -> _T:
    if len(frame) > limit:
        raise SecurityError(Code.TOO_LARGE, "message over the limit", bytes=len(frame), limit=limit)
    if not frame:
        raise SecurityError(Code.MALFORMED, "empty message")
    if frame[0] != PROTOCOL:
        raise SecurityError(Code.UNSUPPORTED_VERSION, "message of another protocol", version=frame[0])
    try:
        return decoder.decode(memoryview(frame)[1:])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise SecurityError(Code.MALFORMED, "message does not decode", reason=str(error)[:200]) from error
