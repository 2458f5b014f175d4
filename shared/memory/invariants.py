"""Invariants of an entry: found once from the original, stored as indexes of its TRACE spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from shared.memory import varint

_TYPE_MASK = 0x07
_NEGATIVE = 0x08
_EACH = 0x10  # a run of spans, one invariant each, instead of one invariant over the run
_LIST = 0x20  # indexes that are not a run


class InvariantType(IntEnum):
    """What an invariant claims about its spans."""

    SPAN = 0
    NUMBER = 1
    DATE = 2
    ID = 3
    TUPLE = 4
    OUTCOME = 5


@dataclass(frozen=True)
class Invariant:
    """`spans` index TRACE spans, in order; `positive` is False where the original negates the claim."""

    type: InvariantType
    spans: tuple[int, ...]
    positive: bool = True

    def __post_init__(self) -> None:
        if not self.spans or min(self.spans) < 0:
            raise ValueError("an invariant names at least one span")


def put_invariants(out: bytearray, invariants: Sequence[Invariant]) -> None:
    """Append: group count, then groups: header byte, then a run (start delta, length) or a list of deltas."""
    groups = _groups(invariants)
    varint.put(out, len(groups))
    at = 0
    for header, indexes in groups:
        out.append(header)
        if header & _LIST:
            varint.put(out, len(indexes))
            for index in indexes:
                varint.put_signed(out, index - at)
                at = index
        else:
            varint.put_signed(out, indexes[0] - at)
            varint.put(out, len(indexes))
            at = indexes[-1]


def get_invariants(reader: varint.Reader) -> tuple[Invariant, ...]:
    """Read what `put_invariants` wrote."""
    found: list[Invariant] = []
    at = 0
    for _ in range(reader.unsigned()):
        header = reader.byte()
        kind, each = header & _TYPE_MASK, bool(header & _EACH)
        if header >= _LIST << 1 or kind > InvariantType.OUTCOME or (each and header & _LIST):
            raise varint.corrupt("unknown invariant", header=header)
        indexes = _get_list(reader, at) if header & _LIST else _get_run(reader, at)
        at = indexes[-1]
        claims = [(index,) for index in indexes] if each else [tuple(indexes)]
        found.extend(Invariant(InvariantType(kind), spans, not header & _NEGATIVE) for spans in claims)
    return tuple(found)


def _groups(invariants: Sequence[Invariant]) -> list[tuple[int, list[int]]]:
    groups: list[tuple[int, list[int]]] = []
    for invariant in invariants:
        header = invariant.type | (0 if invariant.positive else _NEGATIVE)
        indexes = list(invariant.spans)
        if len(indexes) == 1:
            header |= _EACH
            if groups and groups[-1][0] == header and groups[-1][1][-1] + 1 == indexes[0]:
                groups[-1][1].extend(indexes)
                continue
        elif indexes != list(range(indexes[0], indexes[0] + len(indexes))):
            header |= _LIST
        groups.append((header, indexes))
    return groups


def _get_run(reader: varint.Reader, at: int) -> list[int]:
    start, length = at + reader.signed(), reader.unsigned()
    # A run names spans of this record, and each takes two bytes at least: the rest bounds what is believed.
    if start < 0 or not 1 <= length <= reader.left:
        raise varint.corrupt("invariant names impossible spans", start=start, length=length)
    return list(range(start, start + length))


def _get_list(reader: varint.Reader, at: int) -> list[int]:
    count = reader.unsigned()
    if not 2 <= count <= reader.left:
        raise varint.corrupt("invariant has an impossible length", length=count)
    indexes = []
    for _ in range(count):
        at += reader.signed()
        if at < 0:
            raise varint.corrupt("invariant names a span before the first")
        indexes.append(at)
    return indexes
