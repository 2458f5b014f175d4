"""Policies over losslessly packed text: what compression alone does for a binary policy.

Entries are whole, packed, or gone. Packing is the product's: its blocks, its codec, its limits, and its order
of doing things (whatever can be packed is packed before anything goes; nothing is unpacked when the budget
rises). Ours: no trained dictionary, which pays only in stores larger than these, and the blocks are rewritten
at every eviction, so that no dead bytes are charged: both kinder than the device is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bench.policies.contract import Held, Report
from bench.policies.host import Host, HostArm, Row
from bench.policies.retention import RetentionPolicy
from edge_agent.bodies import ROW_BYTES as BLOCK_ROW_BYTES
from shared.memory.blocks import BlockMember, pack_block, runs, unpack_block
from shared.ports import Retention

PACKED = "packed"
_DECODED_BLOCKS = 16


@dataclass(frozen=True)
class Block:
    """Packed bytes, and the text bytes of each entry in them."""

    body: bytes
    text_bytes: dict[int, int]

    @property
    def size_bytes(self) -> int:
        """With its row."""
        return len(self.body) + BLOCK_ROW_BYTES


class PackedHost(Host):
    """A host whose rows may live in blocks; a packed row holds no text of its own."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._blocks: dict[int, Block] = {}
        self._block_of: dict[int, int] = {}
        self._decoded: dict[int, dict[int, bytes]] = {}
        self._next_block = 1

    def bytes(self) -> int:
        """Rows, blocks and side tables."""
        return super().bytes() + self._blocks_bytes()

    def size_bytes(self, number: int) -> int:
        """A packed row's share of its block goes by its text."""
        own = super().size_bytes(number)
        if number not in self._block_of:
            return own
        block = self._blocks[self._block_of[number]]
        whole = max(sum(block.text_bytes.values()), 1)
        return own + math.ceil(block.size_bytes * block.text_bytes[number] / whole)

    def held(self) -> Held:
        """Blocks are text."""
        held = super().held()
        blocks = self._blocks_bytes()
        return replace(held, text=held.text + blocks, shared=held.shared - blocks)

    def text(self, number: int) -> str:
        """Decoded and verified, for a packed row."""
        block = self._block_of.get(number)
        if block is None:
            return super().text(number)
        if block not in self._decoded:
            members = unpack_block(self._blocks[block].body)
            self._decoded[block] = {member.number: member.record for member in members}
            while len(self._decoded) > _DECODED_BLOCKS:
                del self._decoded[next(iter(self._decoded))]
        return self._decoded[block][number].decode()

    def remove(self, number: int) -> Row:
        """The row goes, and its block is packed again without it."""
        block = self._block_of.get(number)
        if block is not None:
            rest = [(other, self.text(other)) for other in self._blocks[block].text_bytes if other != number]
            del self._block_of[number]
            self._drop(block)
            self._put(rest)
        return super().remove(number)

    def pack(self) -> None:
        """Everything into as few blocks as there can be, in the order of kinds and writes."""
        texts = [(number, self.text(number)) for number in sorted(self.rows, key=self._storage_order)]
        for block in list(self._blocks):
            self._drop(block)
        for kind in sorted({self.rows[number].kind for number, _ in texts}):
            of_kind = [pair for pair in texts if self.rows[pair[0]].kind is kind]
            for run in runs([len(text.encode()) for _, text in of_kind]):
                self._put(of_kind[run])

    def _storage_order(self, number: int) -> tuple[int, int]:
        return int(self.rows[number].kind), number

    def _put(self, texts: Iterable[tuple[int, str]]) -> None:
        """A new block, where it is smaller than the texts by themselves."""
        members = [BlockMember(number, text.encode()) for number, text in texts]
        if not members:
            return
        sizes = {member.number: len(member.record) for member in members}
        made = Block(pack_block(members).body, sizes)
        packed = made.size_bytes < sum(sizes.values()) + len(members) * BLOCK_ROW_BYTES
        if packed:
            self._blocks[self._next_block] = made
        for member in members:
            row = self.rows[member.number]
            row.text, row.rung = ("", PACKED) if packed else (member.record.decode(), "full")
            if packed:
                self._block_of[member.number] = self._next_block
            # The index keeps the text: it is a function of what the block holds.
            self._measure(member.number)
        self._next_block += 1

    def _drop(self, block: int) -> None:
        self._decoded.pop(block, None)
        for number in self._blocks.pop(block).text_bytes:
            self._block_of.pop(number, None)

    def _price(self, row: Row) -> int:
        return row.size_bytes() - (BLOCK_ROW_BYTES if row.rung == PACKED else 0)

    def _blocks_bytes(self) -> int:
        return sum(block.size_bytes for block in self._blocks.values())


class PackedPolicy(RetentionPolicy):
    """A retention object over a PackedHost: packing first."""

    def __init__(self, name: str, inner: Retention) -> None:
        super().__init__(inner)
        self.name = name
        self.origin = replace(
            self.origin, system=f"{self.origin.system}, packed", ours=f"{self.origin.ours}; packing"
        )

    def enforce(self, host: Host, budget_bytes: float, now: int) -> Report:
        """Pack, then evict."""
        if isinstance(host, PackedHost) and host.bytes() > budget_bytes:
            host.pack()
        return super().enforce(host, budget_bytes, now)


def packed_arm(name: str, retention: Retention, seed: int) -> HostArm:
    """A binary policy that packs what it keeps."""
    return HostArm(PackedPolicy(name, retention), seed, PackedHost(seed))
