"""What recrystallization spent and got, on the hub: the source of the edge's copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from importlib.resources import files
from pathlib import Path

from shared.host.db import Database, open_db
from shared.ports import LedgerRow

_COLUMNS = (
    "tenant, stage, number, version, origin, target, source, tokens, link_bytes, admitted, reason, wall_ns"
)
_INSERT = f"INSERT INTO spending ({_COLUMNS}, settled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Ledger:
    """ports.LedgerStore in one SQLite file. Run on the hub's store thread."""

    def __init__(self, path: Path) -> None:
        self._database: Database = open_db(path, files("hub") / "schema" / "ledger")

    def record(self, row: LedgerRow) -> None:
        """An attempt that is over."""
        with self._database.write():
            self._database.execute(_INSERT, (*astuple(row), 1))

    def reserve(self, row: LedgerRow, cap_tokens: int) -> int | None:
        """Charge `row.tokens` before the call, durably; None when the stage's cap would break."""
        with self._database.write():
            if self.tokens_spent(row.tenant, row.stage) + row.tokens > cap_tokens:
                return None
            return self._database.insert(_INSERT, (*astuple(row), 0))

    def settle(self, attempt: int, tokens: int, link_bytes: int, reason: str) -> None:
        """What a reserved attempt really cost and how it ended; an empty reason is an admission."""
        with self._database.write():
            self._database.execute(
                "UPDATE spending SET tokens = ?, link_bytes = ?, admitted = ?, reason = ?, settled = 1"
                " WHERE attempt = ?",
                (tokens, link_bytes, not reason, reason, attempt),
            )

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

    def close(self) -> None:
        """Close the file."""
        self._database.close()
