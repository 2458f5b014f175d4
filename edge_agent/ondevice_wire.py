"""What the daemon and its model process say to each other: one socket pair, length-prefixed JSON."""

from __future__ import annotations

from enum import Enum

import msgspec

# Of a model folder that this runtime reads (shared.host.model_folder).
FORMAT = "onnx-int4"
HEAD_BYTES = 4
# A prompt is bounded by max_prompt_tokens (32,768 at most); nothing else is long.
MAX_FRAME_BYTES = 2**20


class End(str, Enum):
    """How a call of the model ended; closed, also a metric label and a reason in the ledger."""

    STOP = "stop"
    LENGTH = "truncated"
    CANCELLED = "cancelled"
    TOO_LONG = "prompt_too_long"
    OUT_OF_MEMORY = "model_out_of_memory"
    FAILED = "model_failed"
    CRASHED = "model_crashed"
    SILENT = "model_silent"
    OVERDUE = "model_overdue"
    """It worked for too long, and was stopped."""
    GARBAGE = "model_garbage"
    UNAVAILABLE = "model_unavailable"


class Load(msgspec.Struct, frozen=True, tag="load"):
    """The first message: what to load, and the bounds it lives in."""

    folder: str
    threads: int
    memory_bytes: int


class Generate(msgspec.Struct, frozen=True, tag="generate"):
    """One call. turns: (role, text). schema (JSON) or pattern (an expression): what the answer follows."""

    job: int
    turns: tuple[tuple[str, str], ...]
    max_tokens: int
    max_prompt_tokens: int
    schema: str = ""
    pattern: str = ""


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop this job before its next token; one that is over already is fine."""

    job: int


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """Ready for calls."""

    model: str
    resident_bytes: int
    seconds: float


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Not loaded; the process ends after saying so. code: shared.errors.Code."""

    code: str
    message: str


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Tokens that are being computed now or were: what a call that dies here has cost."""

    job: int
    prompt_tokens: int
    completion_tokens: int


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """How a call ended; no token of it is computed after this."""

    job: int
    end: End
    text: str
    prompt_tokens: int
    completion_tokens: int
    resident_bytes: int


ToChild = Load | Generate | Cancel
ToParent = Loaded | Refused | Progress | Finished
_TO_CHILD = msgspec.json.Decoder(ToChild)
_TO_PARENT = msgspec.json.Decoder(ToParent)


def framed(message: ToChild | ToParent) -> bytes:
    """The bytes of a message; ValueError where it is too long."""
    body = msgspec.json.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise ValueError(f"a message of {len(body)} bytes")
    return len(body).to_bytes(HEAD_BYTES, "little") + body


def body_bytes(head: bytes) -> int:
    """How long the message behind a head is; ValueError where no message of ours is."""
    size = int.from_bytes(head, "little")
    if not 0 < size <= MAX_FRAME_BYTES:
        raise ValueError(f"a message of {size} bytes")
    return size


def for_child(body: bytes) -> ToChild:
    """A message of the daemon; ValueError for anything else."""
    return _TO_CHILD.decode(body)


def for_parent(body: bytes) -> ToParent:
    """A message of the model process; ValueError for anything else."""
    return _TO_PARENT.decode(body)
