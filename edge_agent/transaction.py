"""One commit of the store: its SQL, its counters, and what memory learns once it is durable."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from copy import copy
from dataclasses import dataclass, fields
from typing import Any

from shared.errors import Code, PermanentError
from shared.host.db import Database
from shared.ports import Rng
from shared.wire import NO_CHAIN

EPOCH_BYTES = 16


@dataclass
class Meta:
    """The one-per-store facts, kept in the meta table. Changed only in the copy that a transaction holds."""

    tenant: str
    ladder: str
    epoch: bytes
    provision_bytes: int
    budget_bytes: int
    target_pending: int = 0
    stage: int = 1
    event: int = 0
    next_number: int = 1
    next_block: int = 1
    next_dictionary: int = 1
    entry_holes: int = 0
    """Entry rows removed since their pages were last written anew."""
    seq: int = 0
    acked_seq: int = 0
    chain: bytes = NO_CHAIN
    hub_generation: int = 0
    empty_bytes: int = 0
    """E: files of this store when it was new, measured."""
    scale: float = 1.0
    """s of spec.md 4, as fitted at the last stage's end."""
    outcomes: bytes = b""
    """Q of Eq. 8: float64 each, oldest first."""
    stage_grades: int = 0
    stage_outcome_sum: float = 0.0
    stage_tokens: int = 0
    embedder: str = ""
    """Signature of the model that the vectors are of, as JSON; empty before the first vector."""
    vector_holes: int = 0
    """Vectors removed since their pages were last written anew."""


class Transaction:
    """What one commit changes besides rows."""

    def __init__(self, database: Database, meta: Meta) -> None:
        self.db = database
        self.meta = copy(meta)
        self._after: list[Callable[[], object]] = []
        self._done: set[Hashable] = set()

    def count(self, name: str, step: int = 1) -> int:
        """The present value of a counter, which then moves on."""
        value: int = getattr(self.meta, name)
        setattr(self.meta, name, value + step)
        return value

    def change(self, **values: float | bytes | str) -> None:
        """Set facts of the store."""
        for name, value in values.items():
            setattr(self.meta, name, value)

    def once(self, key: Hashable) -> bool:
        """True the first time that this commit asks for `key`."""
        fresh = key not in self._done
        self._done.add(key)
        return fresh

    def after(self, call: Callable[[], object]) -> None:
        """Run `call` once the commit is durable, in the order asked."""
        self._after.append(call)

    def committed(self) -> None:
        """Let memory follow the disk."""
        for call in self._after:
            call()


class Journal:
    """Runs transactions and holds the store's facts as of the last commit."""

    def __init__(self, database: Database, meta: Meta) -> None:
        self.db = database
        self.meta = meta
        self.watch: Callable[[], None] = _nobody
        """Called after every commit."""

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """All or nothing, on disk and in memory."""
        change = Transaction(self.db, self.meta)
        with self.db.write():
            yield change
            _save(self.db, self.meta, change.meta)
        self.meta = change.meta
        change.committed()
        self.watch()


def open_journal(database: Database, *, tenant: str, ladder: str, provision_bytes: int, rng: Rng) -> Journal:
    """The journal of a new or an old store; another tenant's or ladder's is refused by both names."""
    held: dict[str, Any] = dict(database.query("SELECT name, value FROM meta"))
    if not held:
        meta = Meta(tenant, ladder, rng.bytes(EPOCH_BYTES), provision_bytes, provision_bytes)
        with database.write():
            _insert(database, vars(meta))
        return Journal(database, meta)
    known = {field.name for field in fields(Meta)}
    meta = Meta(**{name: value for name, value in held.items() if name in known})
    for found, wanted, code in (
        (meta.tenant, tenant, Code.WRONG_TENANT_STORE),
        (meta.ladder, ladder, Code.WRONG_LADDER),
    ):
        if found != wanted:
            raise PermanentError(
                code,
                f"the store holds '{found}', '{wanted}' was asked for",
                hint="Point the daemon at its own data directory, or configure what the store was made with",
                path=str(database.path),
            )
    return Journal(database, meta)


def _nobody() -> None:
    """Nobody watches."""


def _save(database: Database, before: Meta, now: Meta) -> None:
    old = vars(before)
    _insert(database, {name: value for name, value in vars(now).items() if value != old[name]})


def _insert(database: Database, values: dict[str, object]) -> None:
    database.executemany("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", values.items())
