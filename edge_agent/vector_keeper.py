"""Which entries want a vector, and keeping, shedding and replacing the vectors there are. Store's thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge_agent.account import Account
from edge_agent.dispatch import Dispatch
from edge_agent.mover import Mover
from edge_agent.plane import Plane, keeps_vector
from edge_agent.reader import Reader
from edge_agent.search import Scored
from edge_agent.table import Flag, Structured
from edge_agent.vectors import vector_bytes
from shared.memory.model import Rung
from shared.memory.vectors import Floats, Signature


@dataclass(frozen=True)
class Wanting:
    """An entry without a vector: its verified original, and the version that the text is of."""

    number: int
    version: int
    text: str


@dataclass(frozen=True)
class VectorCounts:
    """embedded + pending + without = live entries. without: below COMPRESSED, lossy or damaged ones."""

    embedded: int
    pending: int
    without: int


class VectorKeeper:
    """Nothing is kept of the queue: it is what the table says."""

    def __init__(self, plane: Plane, reader: Reader, mover: Mover, account: Account, link: Dispatch) -> None:
        self._plane = plane
        self._reader = reader
        self._mover = mover
        self._account = account
        self._link = link

    def __len__(self) -> int:
        return len(self._plane.vectors)

    def __contains__(self, number: int) -> bool:
        return number in self._plane.vectors

    @property
    def signature(self) -> Signature | None:
        """The model that made the vectors; None before the first."""
        return self._plane.vectors.signature

    def search(self, query: Floats, limit: int) -> list[Scored]:
        """The nearest entries to a unit vector, best first."""
        return self._plane.vectors.search(query, limit)

    def counts(self) -> VectorCounts:
        """How many entries have a vector, wait for one, or go without."""
        rows = self._plane.table.raw()
        embedded, pending = int((rows["vector_bytes"] > 0).sum()), int(_pending(rows).sum())
        return VectorCounts(embedded, pending, len(self._plane.table) - embedded - pending)

    def any_pending(self) -> bool:
        """Whether an entry waits for its vector."""
        return bool(_pending(self._plane.table.raw()).any())

    def wanting(
        self, signature: Signature, most: int, characters: int, passed_over: Collection[int] = ()
    ) -> list[Wanting]:
        """The first entries that want a vector and fit: at most `most`, of about so many characters."""
        rows = self._plane.table.raw()
        places = np.flatnonzero(_pending(rows) & ~np.isin(rows["number"], list(passed_over)))[:most]
        waiting = rows[places[: self._fitting(signature, len(places))]]
        versions = dict(zip(waiting["number"].tolist(), waiting["version"].tolist(), strict=True))
        chosen: list[Wanting] = []
        for number, text in self._reader.originals(list(versions)):
            chosen.append(Wanting(number, versions[number], text))
            characters -= len(text)
            if characters <= 0:
                break
        return chosen

    def keep(self, signature: Signature, entries: Sequence[Wanting], vectors: Floats) -> int:
        """Write vectors whose entries still want them and that fit the budget; how many. Under the lock."""
        standing = [place for place, entry in enumerate(entries) if self._stands(entry)]
        standing = standing[: self._fitting(signature, len(standing))]
        if not standing:
            return 0
        self.adopt(signature)
        numbers = [entries[place].number for place in standing]
        rows = self._plane.table.take(numbers)
        rows["vector_bytes"] = vector_bytes(signature.width)
        with self._plane.journal.write() as change:
            self._plane.vectors.put(change, numbers, vectors[standing])
            change.after(lambda: self._plane.table.put_many(rows))
        return len(standing)

    def adopt(self, signature: Signature) -> None:
        """The store is this model's from here on: the vectors of another go in the same commit."""
        if signature == self.signature:
            return
        held = self._plane.table.take(self._plane.vectors.numbers().tolist())
        held["vector_bytes"] = 0
        with self._plane.journal.write() as change:
            self._plane.vectors.adopt(change, signature)
            change.after(lambda: self._plane.table.put_many(held))

    def shed(self, numbers: Sequence[int]) -> None:
        """Drop vectors of live entries, which are found by words from then on."""
        self._mover.shed(numbers)

    def _stands(self, entry: Wanting) -> bool:
        row = self._plane.table.get(entry.number)
        return (
            row is not None
            and int(row["version"]) == entry.version
            and not int(row["vector_bytes"])
            and bool(keeps_vector(Rung(int(row["facts"]["rung"]))))
        )

    def _fitting(self, signature: Signature, wanted: int) -> int:
        """How many more vectors fit below what a squeeze aims at: a vector demotes nothing."""
        budget = self._plane.journal.meta.budget_bytes
        slack = max(budget - self._account.aim_bytes(), self._link.reserve_bytes())
        room = self._account.room_bytes() - slack
        return max(min(int(room // vector_bytes(signature.width)), wanted), 0)


def _pending(rows: Structured) -> NDArray[np.bool_]:
    """Exact and undamaged, so that a vector is of verified original text, and without one. Holes are not."""
    facts = rows["facts"]
    whole = (rows["number"] > 0) & (facts["rung"] <= Rung.PACKED) & ((facts["flags"] & Flag.DAMAGED) == 0)
    return np.asarray(whole & (rows["vector_bytes"] == 0))
