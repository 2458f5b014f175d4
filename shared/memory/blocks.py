"""Blocks: up to 64 entries of one kind and rung packed as one, the member table in the verified plaintext.

Plaintext: version 1 B, count varint, per member (number as zigzag delta, length varint), then the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.errors import Code, PermanentError
from shared.memory import codec, varint
from shared.memory.codec import Codec, Coder, Dictionary, EncodeResult
from shared.memory.coders import CODERS

MAX_MEMBERS = 64
MAX_TEXT_BYTES = 64 * 1024
VERSION = 1
_MAX_NUMBER = 2**32 - 1


@dataclass(frozen=True)
class BlockMember:
    """One entry of a block: its local number and its record (UTF-8 original, or a lossy base's record)."""

    number: int
    record: bytes


def pack_block(
    members: Sequence[BlockMember],
    *,
    level: int = codec.DEFAULT_LEVEL,
    dictionary: Dictionary | None = None,
    coded: bool = True,
    coders: Mapping[Codec, Coder] = CODERS,
) -> EncodeResult:
    """Pack members in the order given; a single member may be larger than a block's text limit."""
    return codec.encode(
        block_plaintext(members), level=level, dictionary=dictionary, coded=coded, coders=coders
    )


def block_plaintext(members: Sequence[BlockMember]) -> bytes:
    """What a block holds before packing; dictionaries are trained and measured on it."""
    size = sum(len(member.record) for member in members)
    if not 1 <= len(members) <= MAX_MEMBERS or (len(members) > 1 and size > MAX_TEXT_BYTES):
        raise PermanentError(
            Code.INTERNAL, "a block holds 1..64 members and 64 KB", members=len(members), bytes=size
        )
    if len({member.number for member in members}) != len(members):
        raise PermanentError(Code.INTERNAL, "a block holds a number twice")
    out = bytearray((VERSION,))
    varint.put(out, len(members))
    previous = 0
    for member in members:
        varint.put_signed(out, member.number - previous)
        varint.put(out, len(member.record))
        previous = member.number
    return bytes(out) + b"".join(member.record for member in members)


def unpack_block(
    body: bytes, dictionaries: Mapping[int, Dictionary] | None = None
) -> tuple[BlockMember, ...]:
    """Verified members in stored order; IntegrityError when anything at all is off."""
    reader = varint.Reader(codec.decode(body, dictionaries))
    if reader.byte() != VERSION:
        raise varint.corrupt("unknown block version")
    count = reader.unsigned()
    if not 1 <= count <= MAX_MEMBERS:
        raise varint.corrupt("block has an impossible member count", members=count)
    table, number = [], 0
    for _ in range(count):
        number += reader.signed()
        if not 0 <= number <= _MAX_NUMBER:
            raise varint.corrupt("block has an impossible member number", number=number)
        table.append((number, reader.unsigned()))
    members = tuple(BlockMember(number, reader.take(length)) for number, length in table)
    if reader.left:
        raise varint.corrupt("block has bytes left over", left=reader.left)
    return members


def runs(sizes: Sequence[int]) -> list[slice]:
    """Cut records of these sizes, in order, into the fewest consecutive blocks that keep both limits."""
    cuts: list[slice] = []
    start, size = 0, 0
    for position, record_bytes in enumerate(sizes):
        full = position - start == MAX_MEMBERS or size + record_bytes > MAX_TEXT_BYTES
        if position > start and full:
            cuts.append(slice(start, position))
            start, size = position, 0
        size += record_bytes
    if start < len(sizes):
        cuts.append(slice(start, len(sizes)))
    return cuts
