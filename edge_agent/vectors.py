"""Vector codes of entries: rows on disk, the same bytes in memory, searched by an exact scan (spec.md 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from edge_agent.search import Scored
from edge_agent.transaction import Journal, Transaction
from shared.errors import Code, PermanentError
from shared.host.db import Database
from shared.memory.vectors import Codes, Floats, Rotation, Signature, bits, centred, encode, scores, top

# Measured on full 1 KB pages: 17 rows of 48 bytes a page, 60 bytes each.
VECTOR_ROW_BYTES = 12
_BITS = 8
_LEAST_CAPACITY = 256


class Vectors:
    """Codes by entry number, of one model. Belongs to the store's thread."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._db = database
        self._journal = journal
        self._rotation: Rotation | None = None
        self._codes = _Held(0)
        if self.signature is not None:
            self._load(self.signature)

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, number: int) -> bool:
        return number in self._codes

    @property
    def signature(self) -> Signature | None:
        """The model that made the codes; None before the first."""
        return read_signature(self._journal.meta.embedder)

    @property
    def charged_bytes(self) -> int:
        """What one vector costs the budget; 0 before the first model."""
        return vector_bytes(self._rotation.width) if self._rotation is not None else 0

    def numbers(self) -> NDArray[np.int64]:
        """Entries that have a vector, in no order."""
        return self._codes.numbers()

    def adopt(self, change: Transaction, signature: Signature) -> None:
        """From now on the codes are this model's: those of another go, in the same commit."""
        if signature == self.signature:
            return
        change.db.execute("DELETE FROM vector")
        change.change(embedder=_written(signature), vector_holes=0)
        change.after(partial(self._adopted, signature))

    def put(self, change: Transaction, numbers: Sequence[int], vectors: Floats) -> None:
        """Keep unit vectors, (n, width), of entries that have none; `adopt` came first."""
        if self._rotation is None or vectors.shape != (len(numbers), self._rotation.width):
            raise PermanentError(Code.INTERNAL, "vectors of another width", found=vectors.shape)
        codes = encode(self._rotation, vectors)
        change.db.executemany(
            "INSERT INTO vector (number, code) VALUES (?, ?)",
            [(number, code.tobytes()) for number, code in zip(numbers, codes, strict=True)],
        )
        change.after(partial(self._codes.put, list(numbers), codes))

    def drop(self, change: Transaction, numbers: Iterable[int]) -> None:
        """Entries went, or shed their vectors; unknown numbers are fine."""
        gone = [number for number in numbers if number in self._codes]
        if not gone:
            return
        change.db.executemany("DELETE FROM vector WHERE number = ?", [(number,) for number in gone])
        change.count("vector_holes", len(gone))
        change.after(partial(self._codes.remove, gone))

    def rewrite(self, change: Transaction, first: int, last: int) -> None:
        """Write the rows of a range of numbers anew: full pages again."""
        bounds = first, last
        rows = change.db.query(
            "SELECT number, code FROM vector WHERE number BETWEEN ? AND ? ORDER BY number", bounds
        )
        change.db.execute("DELETE FROM vector WHERE number BETWEEN ? AND ?", bounds)
        change.db.executemany("INSERT INTO vector (number, code) VALUES (?, ?)", rows)

    def search(self, query: Floats, limit: int) -> list[Scored]:
        """The nearest entries to a unit vector, best first; equal ones by number."""
        count = len(self._codes)
        if not count or self._rotation is None:
            return []
        rotated = self._rotation.apply(query.reshape(1, -1))[0]
        found = scores(centred(rotated, self._codes.ones, count), self._codes.by_byte())
        numbers = self._codes.numbers()
        places = top(found, numbers, limit)
        return [
            Scored(number, score)
            for number, score in zip(numbers[places].tolist(), found[places].tolist(), strict=True)
        ]

    def _load(self, signature: Signature) -> None:
        self._adopted(signature)
        rows = self._db.query("SELECT number, code FROM vector ORDER BY number")
        size = signature.width // _BITS
        # A vector can be made again: one of a wrong length is no reason to refuse the store.
        wrong = [number for number, code in rows if len(code) != size]
        if wrong:
            with self._journal.write() as change:
                change.db.executemany("DELETE FROM vector WHERE number = ?", [(number,) for number in wrong])
        kept = [(number, code) for number, code in rows if len(code) == size]
        if kept:
            codes = np.frombuffer(b"".join(code for _, code in kept), np.uint8).reshape(-1, size)
            self._codes.put([number for number, _ in kept], codes)

    def _adopted(self, signature: Signature) -> None:
        self._rotation = Rotation(signature.width)
        self._codes = _Held(signature.width // _BITS)


class _Held:
    """Codes in columns, one an entry, so that a scan reads a byte of all entries in a row."""

    def __init__(self, size: int) -> None:
        self._columns = np.zeros((size, _LEAST_CAPACITY), np.uint8)
        self._numbers = np.zeros(_LEAST_CAPACITY, np.int64)
        self._place_of: dict[int, int] = {}
        self.ones = np.zeros(size * _BITS, np.int64)
        """How many codes have each bit set."""

    def __len__(self) -> int:
        return len(self._place_of)

    def __contains__(self, number: int) -> bool:
        return number in self._place_of

    def numbers(self) -> NDArray[np.int64]:
        return self._numbers[: len(self)]

    def by_byte(self) -> Codes:
        return self._columns[:, : len(self)]

    def put(self, numbers: Sequence[int], codes: Codes) -> None:
        start, end = len(self), len(self) + len(numbers)
        if end > len(self._numbers):
            # A quarter more: memory stays near the bytes of the codes.
            more = max(end, len(self._numbers) * 5 // 4) - len(self._numbers)
            self._columns = np.pad(self._columns, ((0, 0), (0, more)))
            self._numbers = np.pad(self._numbers, (0, more))
        self._columns[:, start:end] = codes.T
        self._numbers[start:end] = numbers
        self._place_of.update(zip(numbers, range(start, end), strict=True))
        self.ones += bits(codes)

    def remove(self, numbers: Iterable[int]) -> None:
        """The last code takes the place of one that goes."""
        for number in numbers:
            place, last = self._place_of.pop(number), len(self)
            self.ones -= bits(np.ascontiguousarray(self._columns[:, place]).reshape(1, -1))
            if place != last:
                moved = int(self._numbers[last])
                self._columns[:, place] = self._columns[:, last]
                self._numbers[place] = moved
                self._place_of[moved] = place


def vector_bytes(width: int) -> int:
    """What a vector of this width costs the budget."""
    return width // _BITS + VECTOR_ROW_BYTES


def check_signature(held: Signature | None, wanted: Signature | None) -> None:
    """PermanentError(WRONG_EMBEDDER) where a store's vectors are another model's than the configured one."""
    if held is None or wanted is None or held == wanted:
        return
    raise PermanentError(
        Code.WRONG_EMBEDDER,
        f"the store's vectors are of '{named(held)}', '{named(wanted)}' is configured",
        hint="Run `crystalmem reembed` to make them anew with this model, or configure the other one",
    )


def named(signature: Signature) -> str:
    """A model in words: id, width, pooling, prefixes and weights where they are known."""
    prefixes = [repr(text) for text in (signature.query_prefix, signature.passage_prefix) if text]
    weights = [f"weights {signature.weights}"] if signature.weights else []
    return ", ".join((signature.model, f"{signature.width} d", signature.pooling, *prefixes, *weights))


def read_signature(text: str) -> Signature | None:
    """As the meta table holds it; empty = none."""
    return msgspec.json.decode(text, type=Signature) if text else None


def _written(signature: Signature) -> str:
    return msgspec.json.encode(signature).decode()
