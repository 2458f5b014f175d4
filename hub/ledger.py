"""What recrystallization spent and got, on the hub: the source of the edge's copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from importlib.resources import files
from pathlib import Path

from shared.host.db import Database, open_db
from shared.ports import LedgerRow
from shared.wire import DraftFailure

_COLUMNS = (
    "tenant, stage, number, version, origin, target, source, tokens, link_bytes, admitted, reason, wall_ns"
)
_INSERT = (
    f"INSERT INTO spending ({_COLUMNS}, settled, base_digest)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Ledger:
    """ports.LedgerStore in one SQLite file. Run on the hub's store thread."""

    def __init__(self, path: Path) -> None:
        self._database: Database = open_db(path, files("hub") / "schema" / "ledger")

    def record(self, row: LedgerRow) -> None:
        """An attempt that is over."""
        with self._database.write():
            self._database.execute(_INSERT, (*astuple(row), 1, b""))

    def reserve(self, row: LedgerRow, cap_tokens: int, base_digest: bytes = b"") -> int | DraftFailure:
        """Charge `row.tokens` before the call, durably; OVER_CAP when the stage's cap would break.

        ALREADY_CHARGED: this base and rung cost something in this stage before, whatever came of it.
        """
        with self._database.write():
            if base_digest and self._charged(row, base_digest):
                return DraftFailure.ALREADY_CHARGED
            if self.tokens_spent(row.tenant, row.stage) + row.tokens > cap_tokens:
                return DraftFailure.OVER_CAP
            return self._database.insert(_INSERT, (*astuple(row), 0, base_digest))

    def settle(
        self, attempt: int, tokens: int, link_bytes: int, reason: str, *, estimated: bool = False
    ) -> None:
        """What a reserved attempt really cost and how it ended; an empty reason is an admission."""
        with self._database.write():
            self._database.execute(
                "UPDATE spending SET tokens = ?, link_bytes = ?, admitted = ?, reason = ?, estimated = ?,"
                " settled = 1 WHERE attempt = ?",
                (tokens, link_bytes, not reason, reason, estimated, attempt),
            )

    def stretch(self, attempt: int, tokens: int, cap_tokens: int) -> int:
        """What may be charged of more `tokens` than were reserved: as much as the stage's cap still holds."""
        with self._database.write():
            tenant, stage, reserved = self._database.query(
                "SELECT tenant, stage, tokens FROM spending WHERE attempt = ?", (attempt,)
            )[0]
            left = cap_tokens - self.tokens_spent(tenant, stage)
            granted: int = reserved + min(max(tokens - reserved, 0), max(left, 0))
            self._database.execute("UPDATE spending SET tokens = ? WHERE attempt = ?", (granted, attempt))
            return granted

    def release(self, attempt: int) -> None:
        """A reserved attempt that no endpoint took: as if it had not been."""
        with self._database.write():
            self._database.execute("DELETE FROM spending WHERE attempt = ?", (attempt,))

    def totals(self, tenant: str) -> Mapping[str, float]:
        """Sums over every stage of a tenant."""
        tokens, link_bytes, attempts, admitted = self._database.query(
            "SELECT coalesce(sum(tokens), 0), coalesce(sum(link_bytes), 0), count(*),"
            " coalesce(sum(admitted), 0) FROM spending WHERE tenant = ?",
            (tenant,),
        )[0]
        return {"tokens": tokens, "link_bytes": link_bytes, "attempts": attempts, "admitted": admitted}

    def tokens_spent(self, tenant: str, stage: int) -> int:
        """Charged in one stage, reservations included."""
        return int(
            self._database.query(
                "SELECT coalesce(sum(tokens), 0) FROM spending WHERE tenant = ? AND stage = ?",
                (tenant, stage),
            )[0][0]
        )

    def estimated_tokens(self, tenant: str) -> int:
        """Tokens of a tenant that no endpoint counted: estimates, and reservations that a crash left."""
        return int(
            self._database.query(
                "SELECT coalesce(sum(tokens), 0) FROM spending WHERE tenant = ?"
                " AND (estimated = 1 OR settled = 0)",
                (tenant,),
            )[0][0]
        )

    def _charged(self, row: LedgerRow, base_digest: bytes) -> bool:
        found = self._database.query_one(
            "SELECT 1 FROM spending WHERE tenant = ? AND stage = ? AND number = ? AND version = ?"
            " AND target = ? AND base_digest = ? AND tokens > 0",
            (row.tenant, row.stage, row.number, row.version, row.to, base_digest),
        )
        return found is not None

    def close(self) -> None:
        """Close the file."""
        self._database.close()
