"""Trained dictionaries of one store: charged in full, immutable, retired when nothing refers to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from edge_agent.transaction import Transaction
from shared.host.db import Database
from shared.memory.codec import Dictionary
from shared.memory.model import Kind

ROW_BYTES = 32


class Dictionaries:
    """Every live dictionary by number, and the one that new blocks of a kind use."""

    def __init__(self, database: Database) -> None:
        self._held: dict[int, Dictionary] = {}
        self._of_kind: dict[Kind, int] = {}
        for number, kind, name, body in database.query(
            "SELECT number, kind, digest, body FROM dictionary ORDER BY number"
        ):
            self._adopted(Kind(kind), Dictionary(number, name, body))

    @property
    def held(self) -> Mapping[int, Dictionary]:
        """All of them, for decoding."""
        return MappingProxyType(self._held)

    def current(self, kind: Kind) -> Dictionary | None:
        """The newest dictionary of a kind."""
        return self._held.get(self._of_kind.get(kind, 0))

    def charged_bytes(self) -> int:
        """What they cost the budget."""
        return sum(len(dictionary.body) + ROW_BYTES for dictionary in self._held.values())

    def adopt(self, change: Transaction, kind: Kind, body: bytes) -> Dictionary:
        """Keep a new dictionary; blocks packed from now on use it."""
        dictionary = Dictionary.of(change.count("next_dictionary"), body)
        change.db.execute(
            "INSERT INTO dictionary (number, kind, digest, body) VALUES (?, ?, ?, ?)",
            (dictionary.number, kind, dictionary.digest, body),
        )
        change.after(lambda: self._adopted(kind, dictionary))
        return dictionary

    def retire(self, change: Transaction, used: Collection[int]) -> tuple[int, ...]:
        """Drop every dictionary that no block refers to (a scan, not a counter)."""
        unused = tuple(number for number in self._held if number not in used)
        change.db.executemany("DELETE FROM dictionary WHERE number = ?", ((number,) for number in unused))
        change.after(lambda: self._retired(unused))
        return unused

    def _adopted(self, kind: Kind, dictionary: Dictionary) -> None:
        self._held[dictionary.number] = dictionary
        self._of_kind[kind] = dictionary.number

    def _retired(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            del self._held[number]
        self._of_kind = {kind: number for kind, number in self._of_kind.items() if number in self._held}
