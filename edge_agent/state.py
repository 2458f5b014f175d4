"""The books beside the memory (`state/`): stages and loop points, ledger copy, sweeps, evictions. No text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from edge_agent.entries import EvictedEntry, EvictionReason, StageTally
from edge_agent.sweep_report import SweepReport
from shared.host.db import Database, open_db
from shared.host.files import directory_bytes
from shared.memory.cycle import LoopPoint
from shared.memory.model import Kind, MemoryClass, Rung
from shared.ports import LedgerRow
from shared.units import MIB

FILE_NAME = "state.db"
STATE_MAX_BYTES = 64 * MIB
# What is trimmed at once where the cap binds: enough that the next trim is far away.
_TRIM_SHARE = 0.25
_SWEEPS_LOOKED_AT = 200
_Z95 = 1.959964
# Sources in the ledger besides shared.memory.model.Source: what the board's own model did.
ON_DEVICE = "on_device"
RELEVEL = "relevel"
_INSERT = (
    "INSERT INTO ledger (tenant, stage, number, version, origin, target, source, tokens,"
    " link_bytes, admitted, reason, wall_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_MOVE = np.dtype([("number", "<u4"), ("origin", "u1"), ("to", "u1")])


@dataclass(frozen=True)
class Eviction:
    """One eviction on record."""

    number: int
    public_id: bytes
    kind: Kind
    memory_class: MemoryClass
    value: float
    reason: EvictionReason


@dataclass(frozen=True)
class SweptMove:
    """A move of one entry in a sweep, and the sweep's water level."""

    stage: int
    price: float
    origin: Rung
    to: Rung


class State:
    """Implements ports.LedgerStore. Belongs to the store's thread."""

    def __init__(self, database: Database, max_bytes: int) -> None:
        self._db = database
        self._max_bytes = max_bytes

    @classmethod
    def open(cls, directory: Path, max_bytes: int = STATE_MAX_BYTES) -> State:
        """The books in `directory` (`state/`), made where there are none."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(open_db(directory / FILE_NAME, files("edge_agent") / "schema_state"), max_bytes)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # --- stages -------------------------------------------------------------------------------------------

    def end_stage(self, tally: StageTally, b: float, measured: float | None, wall_ns: int) -> None:
        """The loop point of a stage: graded outcomes of its own, and the capability its caller measured."""
        point = graded_point(tally, b)
        capability, low, high = (None, None, None) if point is None else (point.capability, *point.interval)
        with self._db.write():
            self._db.execute(
                "INSERT OR REPLACE INTO stage"
                " (stage, b, capability, grades, low, high, measured, tokens, wall_ns)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (tally.stage, b, capability, tally.grades, low, high, measured, tally.tokens, wall_ns),
            )

    def loop_points(self) -> tuple[LoopPoint, ...]:
        """Stages with graded outcomes, oldest first."""
        rows = self._db.query(
            "SELECT b, capability, grades, low, high FROM stage WHERE grades > 0 ORDER BY stage"
        )
        return tuple(LoopPoint(b, capability, n, (low, high)) for b, capability, n, low, high in rows)

    def serving_tokens(self, stage: int) -> int:
        """n of Eq. 10: tokens that a finished stage served with."""
        row = self._db.query_one("SELECT tokens FROM stage WHERE stage = ?", (stage,))
        return 0 if row is None else int(row[0])

    # --- ledger -------------------------------------------------------------------------------------------

    def record(self, row: LedgerRow) -> None:
        """One attempt to lift one entry."""
        self.record_all((row,))

    def record_all(self, rows: Sequence[LedgerRow]) -> None:
        """Attempts that were made together, in one commit."""
        with self._db.write():
            self._db.executemany(_INSERT, [astuple(row) for row in rows])

    def reserve(self, row: LedgerRow, cap_tokens: float) -> int | None:
        """Charge an attempt before it is made, where the stage's cap has room; its place in the ledger.

        Settled when it is over; what a crash leaves unsettled stays charged as it was reserved.
        """
        with self._db.write():
            if self.tokens_spent(row.tenant, row.stage) + row.tokens > cap_tokens:
                return None
            return self._db.insert(_INSERT, astuple(row))

    def settle(self, place: int, row: LedgerRow) -> None:
        """What a reserved attempt came to."""
        with self._db.write():
            self._db.execute(
                "UPDATE ledger SET tokens = ?, admitted = ?, reason = ?, wall_ns = ? WHERE row = ?",
                (row.tokens, row.admitted, row.reason, row.wall_ns, place),
            )

    def charged(self, row: LedgerRow, except_place: int) -> bool:
        """Whether this version and rung cost something in this stage before, of the same source."""
        found = self._db.query_one(
            "SELECT 1 FROM ledger WHERE tenant = ? AND stage = ? AND number = ? AND version = ?"
            " AND target = ? AND source = ? AND tokens > 0 AND row != ?",
            (row.tenant, row.stage, row.number, row.version, row.to, row.source, except_place),
        )
        return found is not None

    def attempts(self, after: int) -> tuple[LedgerRow, ...]:
        """What the ledger holds behind its first `after` rows, in order; rows are never removed."""
        rows = self._db.query(
            "SELECT tenant, stage, number, version, origin, target, source, tokens, link_bytes, admitted,"
            " reason, wall_ns FROM ledger ORDER BY row LIMIT -1 OFFSET ?",
            (after,),
        )
        return tuple(
            LedgerRow(
                tenant=tenant,
                stage=stage,
                number=number,
                version=version,
                origin=Rung(origin),
                to=Rung(to),
                source=source,
                tokens=tokens,
                link_bytes=link_bytes,
                admitted=bool(admitted),
                reason=reason,
                wall_ns=wall_ns,
            )
            for tenant, stage, number, version, origin, to, source, tokens, *rest in rows
            for link_bytes, admitted, reason, wall_ns in (rest,)
        )

    def totals(self, tenant: str) -> Mapping[str, float]:
        """Attempts to lift, admissions, tokens of any use, and link bytes in all."""
        row = self._db.query_one(
            "SELECT coalesce(sum(source != ?), 0), coalesce(sum(admitted AND source != ?), 0),"
            " coalesce(sum(tokens), 0), coalesce(sum(link_bytes), 0) FROM ledger WHERE tenant = ?",
            (RELEVEL, RELEVEL, tenant),
        )
        names = ("attempts", "admitted", "tokens", "link_bytes")
        return dict(zip(names, map(float, row or (0, 0, 0, 0)), strict=True))

    def tokens_spent(self, tenant: str, stage: int) -> int:
        """Tokens charged in a stage, admitted or not."""
        row = self._db.query_one(
            "SELECT coalesce(sum(tokens), 0) FROM ledger WHERE tenant = ? AND stage = ?", (tenant, stage)
        )
        return 0 if row is None else int(row[0])

    def board_tokens(self, tenant: str, stage: int) -> int:
        """Of these, what the board's own model spent: the hub's ledger does not know it."""
        row = self._db.query_one(
            "SELECT coalesce(sum(tokens), 0) FROM ledger WHERE tenant = ? AND stage = ? AND source IN (?, ?)",
            (tenant, stage, ON_DEVICE, RELEVEL),
        )
        return 0 if row is None else int(row[0])

    # --- audit --------------------------------------------------------------------------------------------

    def record_sweep(self, report: SweepReport, stage: int, wall_ns: int) -> None:
        """One record a sweep; one that did nothing leaves none."""
        if not (report.moves or report.evicted):
            return
        moves = np.array(
            [(move.number, move.origin, move.to) for move in report.moves.values()], _MOVE
        ).tobytes()
        lost = np.array(report.lost_exact, "<u4").tobytes()
        with self._db.write():
            self._db.execute(
                "INSERT INTO sweep (stage, price, guard_yielded, moves, lost, wall_ns)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (stage, report.price, report.guard_yielded, moves, lost, wall_ns),
            )
        self._trim()

    def record_evictions(self, gone: Sequence[EvictedEntry], stage: int, wall_ns: int) -> None:
        """One event an eviction, on disk before the entry goes."""
        rows = [
            (
                entry.number,
                entry.public_id,
                entry.kind,
                entry.memory_class,
                entry.value,
                entry.reason.value,
                stage,
                wall_ns,
            )
            for entry in gone
        ]
        with self._db.write():
            self._db.executemany(
                "INSERT OR REPLACE INTO eviction (number, id, kind, memory_class, value, reason, stage,"
                " wall_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def last_move(self, number: int) -> SweptMove | None:
        """What the latest sweep on record did with an entry."""
        rows = self._db.query(
            "SELECT stage, price, moves FROM sweep ORDER BY row DESC LIMIT ?", (_SWEEPS_LOOKED_AT,)
        )
        for stage, price, moves in rows:
            held = np.frombuffer(moves, _MOVE)
            for move in held[held["number"] == number]:
                return SweptMove(stage, price, Rung(int(move["origin"])), Rung(int(move["to"])))
        return None

    def lost_exact(self) -> tuple[int, ...]:
        """Entries that lost their exact form before the hub had it, as far as the audit reaches back."""
        rows = self._db.query("SELECT lost FROM sweep ORDER BY row")
        return tuple(number for (lost,) in rows for number in np.frombuffer(lost, "<u4").tolist())

    def evictions(self, after: int, limit: int) -> tuple[Eviction, ...]:
        """Evictions on record by number."""
        rows = self._db.query(
            "SELECT number, id, kind, memory_class, value, reason FROM eviction"
            " WHERE number > ? ORDER BY number LIMIT ?",
            (after, limit),
        )
        return tuple(
            Eviction(number, public_id, Kind(kind), MemoryClass(held), value, EvictionReason(reason))
            for number, public_id, kind, held, value, reason in rows
        )

    def evicted_number(self, public_id: bytes) -> int | None:
        """The number under which an id was evicted last."""
        row = self._db.query_one("SELECT max(number) FROM eviction WHERE id = ?", (public_id,))
        return None if row is None or row[0] is None else int(row[0])

    def _trim(self) -> None:
        """Oldest audit first while the cap binds; the ledger and the stages stay."""
        while directory_bytes(self._db.path.parent) > self._max_bytes and self._drop_oldest():
            self._db.shrink()

    def _drop_oldest(self) -> int:
        """Drop a share of the audit; how many rows went."""
        gone = 0
        with self._db.write():
            for table, key, order in (("sweep", "row", "row"), ("eviction", "number", "wall_ns, number")):
                count = self._db.query(f"SELECT count(*) FROM {table}")[0][0]
                gone += self._db.execute(
                    f"DELETE FROM {table} WHERE {key} IN"
                    f" (SELECT {key} FROM {table} ORDER BY {order} LIMIT ?)",
                    (math.ceil(_TRIM_SHARE * count),),
                )
        return gone


def graded_point(tally: StageTally, b: float) -> LoopPoint | None:
    """C = mean graded outcome x 100, Wilson interval (outcomes in [0, 1] vary no more than 0 and 1 do)."""
    n = tally.grades
    if n == 0:
        return None
    mean = tally.outcome_sum / n
    spread = _Z95**2 / n
    centre = (mean + spread / 2) / (1 + spread)
    half = math.sqrt(mean * (1 - mean) * spread + spread**2 / 4) / (1 + spread)
    return LoopPoint(b, 100 * mean, n, (100 * max(centre - half, 0.0), 100 * min(centre + half, 1.0)))
