"""What the local door accepts: typed requests, and the checks that name the thing, the value and the fix."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from typing import Annotated, Any, TypeVar

import msgspec

from shared.errors import Code, InputError
from shared.memory.model import Kind, MemoryClass
from shared.units import MIB, format_bytes

MAX_TEXT_BYTES = MIB
MAX_QUERY_BYTES = 16 * 1024
MAX_LINKS = 64
MAX_HITS = 100
# JSON may write one byte of text as six (\u00XX).
MAX_BODY_BYTES = 6 * MAX_TEXT_BYTES + 64 * 1024
ID_BYTES = 16

_BLANKS = "\u200b\u200c\u200d\u2060\ufeff"

Size = Annotated[int, msgspec.Meta(ge=1, le=2**50)]


class Remember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST remember."""

    text: str
    id: str | None = None
    kind: str = "episode"
    memory_class: str | None = msgspec.field(default=None, name="class")
    links: list[str] = []
    created: str | None = None


class Recall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST recall."""

    query: str
    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_HITS)] = 5
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=MAX_TEXT_BYTES)] = 4096
    record: bool = True


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST outcome."""

    recall_id: str
    g: float
    tokens: Annotated[int, msgspec.Meta(ge=0, le=2**40)] | None = None


class SetBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST budget and budget/plan: exactly one of bytes and fraction."""

    bytes: Size | None = None
    fraction: float | None = None
    provision_bytes: Size | None = None
    capability: float | None = None


class Settle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST settle."""

    timeout_s: Annotated[float, msgspec.Meta(gt=0.0, le=3600.0)] = 60.0


class Restore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST restore: an id (lossy entry, or evicted and still named) or the local number of a stub."""

    id: str | None = None
    number: Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)] | None = None


RequestT = TypeVar("RequestT", bound=msgspec.Struct)


def parse(body: bytes, kind: type[RequestT]) -> RequestT:
    """A request from JSON bytes; InputError says what is wrong and where."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InputError(
            Code.NOT_UTF8,
            "the request is not UTF-8",
            offset=problem.start,
            byte=f"0x{body[problem.start]:02x}",
            hint="Encode the JSON as UTF-8",
        ) from None
    try:
        tree: Any = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InputError(Code.BAD_REQUEST, f"the request is not JSON: {problem}") from None
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as problem:
        raise InputError(
            Code.BAD_REQUEST,
            f"{kind.__name__.lower()}: {problem}",
            hint=f"Known fields: {', '.join(kind.__struct_encode_fields__)}",
        ) from None


def checked_text(text: str, limit_bytes: int = MAX_TEXT_BYTES) -> str:
    """A text that can be stored and given back bit for bit."""
    size = len(utf8(text))
    if "\0" in text:
        raise InputError(
            Code.NUL_IN_TEXT,
            "the text holds a NUL",
            offset=text.index("\0"),
            hint="Remove it or encode the data",
        )
    if not text.strip().strip(_BLANKS).strip():
        raise InputError(
            Code.EMPTY_TEXT, "the text is empty or blank", value=text[:20], hint="Give it content"
        )
    if size > limit_bytes:
        raise InputError(
            Code.TEXT_TOO_LARGE,
            f"the text is {format_bytes(size)}, the limit is {format_bytes(limit_bytes)}",
            size_bytes=size,
            limit_bytes=limit_bytes,
            hint="Split it into several entries",
        )
    return text


def utf8(text: str) -> bytes:
    """UTF-8 bytes of a text; a lone surrogate is refused by place."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise InputError(
            Code.LONE_SURROGATE,
            "the text holds a lone surrogate",
            offset=problem.start,
            value=f"U+{ord(text[problem.start]):04X}",
            hint="Repair the escape; text must be valid Unicode",
        ) from None


def checked_query(query: str) -> str:
    """A query; an empty one is fine and finds nothing."""
    size = len(utf8(query))
    if size > MAX_QUERY_BYTES:
        raise InputError(
            Code.TEXT_TOO_LARGE, "the query is too long", size_bytes=size, limit_bytes=MAX_QUERY_BYTES
        )
    return query


def checked_grade(g: float) -> float:
    """g of an outcome: a number in [0, 1]."""
    if math.isnan(g) or not 0.0 <= g <= 1.0:
        raise InputError(Code.BAD_OUTCOME, "g must lie in [0, 1]", value=str(g))
    return g


def checked_fraction(fraction: float) -> float:
    """b of a budget: a share of the provision in (0, 1]."""
    if math.isnan(fraction) or not 0.0 < fraction <= 1.0:
        raise InputError(
            Code.BAD_BUDGET,
            "a fraction must lie in (0, 1]",
            value=str(fraction),
            hint="Use bytes, or raise the provision with provision_bytes",
        )
    return fraction


def checked_capability(capability: float) -> float:
    """C of a stage: 0-100."""
    if math.isnan(capability) or not 0.0 <= capability <= 100.0:
        raise InputError(Code.BAD_REQUEST, "capability must lie in [0, 100]", value=str(capability))
    return capability


def parse_id(text: str) -> bytes:
    """16 bytes from 32 hexadecimal digits."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != ID_BYTES or len(text) != 2 * ID_BYTES:
        raise InputError(Code.BAD_ID, "an id is 32 hexadecimal digits", value=text[:64])
    return raw


def parse_kind(name: str) -> Kind:
    """An entry kind by its lower-case name."""
    try:
        return Kind[name.upper()]
    except KeyError:
        known = ", ".join(kind.name.lower() for kind in Kind)
        raise InputError(Code.BAD_REQUEST, "no such kind", value=name[:64], hint=f"One of: {known}") from None


def parse_class(name: str | None, kind: Kind) -> MemoryClass:
    """The class of a memory; other kinds have none."""
    if name is None:
        return MemoryClass.NONE
    known = [entry.name.lower() for entry in MemoryClass if entry is not MemoryClass.NONE]
    if kind is not Kind.MEMORY:
        raise InputError(
            Code.BAD_REQUEST, "only a memory has a class", kind=kind.name.lower(), value=name[:64]
        )
    if name.lower() not in known:
        raise InputError(
            Code.BAD_REQUEST, "no such class", value=name[:64], hint=f"One of: {', '.join(known)}"
        )
    return MemoryClass[name.upper()]


def parse_time_ns(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time; a time without offset is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        raise InputError(
            Code.BAD_REQUEST, "not a time", value=text[:64], hint="Write 2026-03-01T08:00:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    seconds = (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()
    if not 0 <= seconds < 2**33:
        raise InputError(Code.BAD_REQUEST, "the time lies outside 1970..2242", value=text[:64])
    return round(seconds * 1_000_000) * 1000


def format_time(wall_ns: int) -> str:
    """RFC 3339 in UTC."""
    moment = datetime.fromtimestamp(wall_ns / 1e9, tz=timezone.utc)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
