"""One SQLite file a tenant: each edge's cursor, idempotent apply in one transaction, crystallized state."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from msgspec.structs import replace

from hub.archive import Archive
from hub.drafts import Drafts, KeptDraft
from hub.entries import Entries, Outcome
from hub.greeting import Cursor, judge
from shared.errors import Code, IntegrityError, SecurityError
from shared.host.db import Database, open_db
from shared.scope import TenantName
from shared.wire import (
    Ack,
    Archived,
    Batch,
    DraftAsk,
    Fetch,
    Hello,
    HelloVerdict,
    decode_ack,
    decode_batch,
    encode,
    next_chain,
)

DATABASE_SUFFIX = ".db"
FIRST_GENERATION = 1


@dataclass(frozen=True)
class Standing:
    """The hub's side of a hello. `retired`: the edge speaks in an epoch it had left, so two copies run."""

    verdict: HelloVerdict
    generation: int
    cursor: int
    chain: bytes
    retired: bool


@dataclass(frozen=True)
class Applied:
    """What a batch came to. `replayed`: it was here before and is acked again, with `deltas` 0.

    `skipped`: deltas about entries or versions that the hub does not have.
    """

    ack: Ack
    deltas: int
    replayed: bool
    skipped: int = 0


class TenantStore:
    """Everything the hub holds of one tenant. Run on the hub's store thread."""

    def __init__(self, directory: Path, tenant: TenantName, quota_bytes: int) -> None:
        self.tenant = tenant
        schema = files("hub") / "schema" / "tenant"
        self._database: Database = open_db(directory / f"{tenant}{DATABASE_SUFFIX}", schema)
        self.archive = Archive(self._database, quota_bytes)
        self._entries = Entries(self._database, self.archive, tenant)
        self._drafts = Drafts(self._database, quota_bytes)
        self._claim()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def generation(self) -> int:
        """Rises when this file is found to be an old copy."""
        return int(self._database.query("SELECT generation FROM tenant")[0][0])

    def hello(self, edge: str, hello: Hello) -> Standing:
        """Compare both sides' books, and remember what follows: a new epoch, a lost tail, an alarm."""
        with self._database.write():
            cursor = self._cursor(edge)
            retired = self._retired(edge, hello.epoch)
            verdict = judge(hello, cursor, retired=retired)
            if verdict is HelloVerdict.RESYNC:
                self._database.execute("UPDATE tenant SET generation = generation + 1")
            elif verdict is HelloVerdict.ALARM:
                self._database.execute("UPDATE cursor SET alarmed = 1 WHERE edge = ?", (edge,))
            elif verdict is HelloVerdict.CONTINUE and (cursor is None or cursor.epoch != hello.epoch):
                cursor = self._begin_epoch(edge, hello.epoch, cursor)
            cursor = cursor or Cursor(hello.epoch)
            return Standing(verdict, self.generation, cursor.seq, cursor.chain, retired)

    def apply(self, edge: str, body: bytes) -> Applied:
        """Epoch check, skip what the cursor covers, apply, move cursor and chain: one transaction."""
        batch = decode_batch(body)
        with self._database.write():
            cursor = self._cursor(edge)
            if cursor is None or cursor.epoch != batch.epoch:
                raise SecurityError(Code.STALE_EPOCH, "the batch is of another epoch", edge=edge)
            if cursor.alarmed:
                raise IntegrityError(Code.CHAIN_MISMATCH, "this edge's stream is stopped", edge=edge)
            if batch.last_seq <= cursor.seq:
                return self._replayed(batch, body, cursor)
            if batch.prev_seq != cursor.seq:
                raise SecurityError(
                    Code.GAP,
                    "the batch does not start at the cursor",
                    edge=edge,
                    starts_after=batch.prev_seq,
                    cursor=cursor.seq,
                )
            return self._fresh(edge, batch, body, cursor)

    def fetch(self, edge: str, ask: Fetch) -> Archived:
        """Everything the archive holds of an entry; PermanentError(SOURCE_ABSENT) when that is nothing."""
        return self._entries.archived(edge, ask)

    def kept_draft(self, edge: str, ask: DraftAsk) -> KeptDraft | None:
        """The admitted draft of exactly this base and rung, if there was one."""
        return self._drafts.find(edge, ask)

    def keep_draft(self, edge: str, ask: DraftAsk, draft: KeptDraft) -> bool:
        """Keep an admitted draft; False where its entry is not known here."""
        with self._database.write():
            return self._drafts.keep(edge, ask, draft)

    # --- epochs and cursors ----------------------------------------------------------------------------

    def _claim(self) -> None:
        with self._database.write():
            self._database.execute(
                "INSERT OR IGNORE INTO tenant (only, name, generation, archive_bytes) VALUES (1, ?, ?, 0)",
                (self.tenant, FIRST_GENERATION),
            )
        found = self._database.query("SELECT name FROM tenant")[0][0]
        if found != self.tenant:
            self._database.close()
            raise IntegrityError(
                Code.WRONG_TENANT_STORE,
                "this file belongs to another tenant",
                hint="Put the files of the hub's data directory back under their own names",
                wanted=self.tenant,
                found=found,
            )

    def _cursor(self, edge: str) -> Cursor | None:
        row = self._database.query_one(
            "SELECT epoch, seq, chain, prev_chain, last_ack, alarmed FROM cursor WHERE edge = ?", (edge,)
        )
        if row is None:
            return None
        epoch, seq, chain, prev_chain, last_ack, alarmed = row
        return Cursor(epoch, seq, chain, prev_chain, last_ack, bool(alarmed))

    def _retired(self, edge: str, epoch: bytes) -> bool:
        row = self._database.query_one(
            "SELECT 1 FROM retired_epoch WHERE edge = ? AND epoch = ?", (edge, epoch)
        )
        return row is not None

    def _begin_epoch(self, edge: str, epoch: bytes, left: Cursor | None) -> Cursor:
        if left is not None:
            self._database.execute(
                "INSERT INTO retired_epoch (edge, epoch) VALUES (?, ?)", (edge, left.epoch)
            )
        start = Cursor(epoch)
        self._move(edge, start)
        return start

    def _move(self, edge: str, cursor: Cursor) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO cursor (edge, epoch, seq, chain, prev_chain, last_ack, alarmed)"
            " VALUES (?, ?, ?, ?, ?, ?, 0)",
            (edge, cursor.epoch, cursor.seq, cursor.chain, cursor.prev_chain, cursor.last_ack),
        )

    # --- batches -----------------------------------------------------------------------------------------

    def _replayed(self, batch: Batch, body: bytes, cursor: Cursor) -> Applied:
        """The last batch gets the answer it had; an older one an ack that says where the cursor is."""
        if batch.last_seq == cursor.seq and next_chain(cursor.prev_chain, body) != cursor.chain:
            # Same numbers, other content: a clone speaks. Acking it would lose what it says.
            raise SecurityError(Code.CHAIN_MISMATCH, "another batch ended at this seq", seq=cursor.seq)
        ack = replace(decode_ack(cursor.last_ack), generation=self.generation)
        return Applied(ack, 0, replayed=True)

    def _fresh(self, edge: str, batch: Batch, body: bytes, cursor: Cursor) -> Applied:
        outcome = Outcome()
        for delta in batch.deltas:
            self._entries.apply(edge, batch.epoch, delta, outcome)
        chain = next_chain(cursor.chain, body)
        ack = Ack(
            self.tenant,
            batch.epoch,
            batch.last_seq,
            chain,
            self.generation,
            tuple(outcome.not_archived),
            tuple(outcome.forgotten),
        )
        self._move(edge, Cursor(batch.epoch, batch.last_seq, chain, cursor.chain, encode(ack)))
        return Applied(ack, len(batch.deltas), replayed=False, skipped=outcome.skipped)
