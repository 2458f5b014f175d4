"""The block table: one text row for an entry at FULL, packed blocks for everything else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from edge_agent.dictionaries import Dictionaries
from edge_agent.transaction import Transaction
from shared import metrics
from shared.errors import Code, IntegrityError
from shared.host.db import Database
from shared.memory.blocks import BlockMember, pack_block, unpack_block
from shared.memory.codec import dictionary_number
from shared.memory.model import Kind

# A recall reads some tens of members; a sweep reads each block once.
_CACHED_BLOCKS = 16
# Bound variables of one statement: far below SQLite's oldest limit of 999.
_QUERY_ROWS = 500
# Enough of an envelope to name its dictionary.
_HEAD_BYTES = 16
# Number, header and cell around a body.
ROW_BYTES = 15
# Rewritten when more of a block than this is dead (spec.md 2).
DEAD_SHARE = 0.25


@dataclass
class Block:
    """A packed block: its bytes, the original text of its first members, and what of that is still alive."""

    body_bytes: int
    text_bytes: int
    dictionary: int
    live_text_bytes: int = 0
    live_members: int = 0

    def share(self, text_bytes: int) -> float:
        """mu of a member's body: the block's bytes by its share of the text."""
        return self.body_bytes * text_bytes / max(self.text_bytes, 1)

    @property
    def dead_bytes(self) -> float:
        """Bytes that belong to no live entry."""
        return self.body_bytes - self.share(self.live_text_bytes)


class Bodies:
    """All stored text and records. Reads are verified by their envelope; entries add their own digest."""

    def __init__(self, database: Database, dictionaries: Dictionaries, *, level: int) -> None:
        self._db = database
        self._dictionaries = dictionaries
        self.level = level
        self._cache: OrderedDict[int, dict[int, bytes]] = OrderedDict()
        self.blocks: dict[int, Block] = {}

    def load(self, members: Iterable[tuple[int, int]]) -> None:
        """Account for every packed block, given (block, text bytes) of each live member."""
        self.blocks = {
            number: Block(size, text_bytes, dictionary_number(head))
            for number, text_bytes, size, head in self._db.query(
                "SELECT number, text_bytes, length(body) + ?, substr(body, 1, ?) FROM block"
                " WHERE typeof(body) = 'blob'",
                (ROW_BYTES, _HEAD_BYTES),
            )
        }
        for number, text_bytes in members:
            block = self.blocks.get(number)
            if block is not None:
                block.live_members += 1
                block.live_text_bytes += text_bytes

    # --- reading ----------------------------------------------------------------------------------

    def text(self, number: int) -> str:
        """The text row of an entry at FULL."""
        row = self._db.query_one("SELECT body FROM block WHERE number = ?", (number,))
        if row is None or not isinstance(row[0], str):
            raise IntegrityError(Code.CORRUPT, "the text row is missing", block=number)
        return row[0]

    def texts(self, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        """(block, text) of many text rows; a missing one is left out."""
        for start in range(0, len(numbers), _QUERY_ROWS):
            wanted = numbers[start : start + _QUERY_ROWS]
            marks = ",".join("?" * len(wanted))
            yield from self._db.query(
                f"SELECT number, body FROM block WHERE number IN ({marks}) AND typeof(body) = 'text'", wanted
            )

    def records(self, number: int) -> Mapping[int, bytes]:
        """Verified record of every first member of a packed block, by entry number."""
        held = self._cache.get(number)
        if held is not None:
            self._cache.move_to_end(number)
            return held
        row = self._db.query_one("SELECT body FROM block WHERE number = ?", (number,))
        if row is None or not isinstance(row[0], bytes):
            raise IntegrityError(Code.CORRUPT, "the block is missing", block=number)
        members = {member.number: member.record for member in unpack_block(row[0], self._dictionaries.held)}
        self._cache[number] = members
        if len(self._cache) > _CACHED_BLOCKS:
            self._cache.popitem(last=False)
        return members

    # --- writing ----------------------------------------------------------------------------------

    def put_text(self, change: Transaction, text: str, text_bytes: int) -> int:
        """A new text row; its block number."""
        number = change.count("next_block")
        change.db.execute(
            "INSERT INTO block (number, text_bytes, body) VALUES (?, ?, ?)", (number, text_bytes, text)
        )
        return number

    def put_block(
        self, change: Transaction, kind: Kind, members: Sequence[BlockMember], text_bytes: int, *, coded: bool
    ) -> tuple[int, Block]:
        """A new packed block of live members; `text_bytes` is their original text."""
        dictionary = self._dictionaries.current(kind) if coded else None
        packed = pack_block(members, level=self.level, dictionary=dictionary, coded=coded)
        metrics.PACK_VERIFY_FAILURES.inc(packed.verify_failures)
        number = change.count("next_block")
        change.db.execute(
            "INSERT INTO block (number, text_bytes, body) VALUES (?, ?, ?)", (number, text_bytes, packed.body)
        )
        block = Block(
            len(packed.body) + ROW_BYTES, text_bytes, dictionary_number(packed.body), text_bytes, len(members)
        )
        change.after(lambda: self.blocks.__setitem__(number, block))
        return number, block

    def leave(self, change: Transaction, members: Iterable[tuple[int, int]], texts: Iterable[int]) -> None:
        """Entries left: (block, text bytes) of packed members, and text rows. Empty blocks are deleted."""
        left: dict[int, tuple[int, int]] = {}
        for number, text_bytes in members:
            count, size = left.get(number, (0, 0))
            left[number] = (count + 1, size + text_bytes)
        empty = [number for number, (count, _) in left.items() if count >= self.blocks[number].live_members]
        change.db.executemany(
            "DELETE FROM block WHERE number = ?", ((number,) for number in (*empty, *texts))
        )
        change.after(lambda: self._left(left, empty))

    def _left(self, left: Mapping[int, tuple[int, int]], empty: Iterable[int]) -> None:
        for number, (count, size) in left.items():
            self.blocks[number].live_members -= count
            self.blocks[number].live_text_bytes -= size
        for number in empty:
            del self.blocks[number]
            self._cache.pop(number, None)

    # --- account ----------------------------------------------------------------------------------

    def dead_bytes(self) -> float:
        """Bytes of blocks that belong to no live entry: charged until the block is rewritten."""
        return sum(block.dead_bytes for block in self.blocks.values())

    def worn(self, dead_share: float) -> list[int]:
        """Blocks with more dead bytes than this share."""
        return [n for n, block in self.blocks.items() if block.dead_bytes > dead_share * block.body_bytes]

    def dictionaries_in_use(self) -> set[int]:
        """Numbers of the dictionaries that any block names."""
        return {block.dictionary for block in self.blocks.values()}
