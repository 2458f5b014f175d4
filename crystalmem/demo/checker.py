"""Counts loss and duplication: reads the files and the driver's journal, asks no daemon and no counter.

    python -m crystalmem.demo.checker --journal FILE --edge DIR [--hub FILE]

Its own process, after the daemons have stopped; the files are opened read-only. The SQL here is on purpose:
sharing the stores' code would share their mistakes.
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from crystalmem.demo.journal import JournalRow, read_journal
from crystalmem.demo.results import Check

SHOWN_DETAILS = 10
_CREATED = 1  # edge_agent.outbox.Op


@dataclass(frozen=True)
class StoredRow:
    """One (number, id, version, digest) as a store's file holds it."""

    number: int | None
    id: bytes
    version: int
    digest: bytes
    creations: int = 1


@dataclass(frozen=True)
class EdgeFiles:
    """What the edge's files hold. `unsent` are numbers that the hub has not been told of yet."""

    live: tuple[StoredRow, ...]
    evicted: frozenset[bytes]
    acked_seq: int
    unsent: frozenset[int]


@dataclass(frozen=True)
class HubFile:
    """What the hub's file of the tenant holds."""

    rows: tuple[StoredRow, ...] = ()
    seq: int = 0


@dataclass
class _Findings:
    lost: list[bytes] = field(default_factory=list)
    changed: list[bytes] = field(default_factory=list)
    duplicated: list[bytes] = field(default_factory=list)
    unjournalled: list[bytes] = field(default_factory=list)


def main() -> None:
    """Print the check as JSON."""
    parser = argparse.ArgumentParser(description="Compare stores with the driver's journal.")
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--edge", type=Path, required=True, help="the edge's data directory")
    parser.add_argument("--hub", type=Path, default=None, help="the hub's file of this tenant")
    options = parser.parse_args()
    sys.stdout.buffer.write(msgspec.json.encode(check(options.journal, options.edge, options.hub)) + b"\n")


def check(journal: Path, edge: Path, hub: Path | None) -> Check:
    """Compare what the files hold with what was meant to be written."""
    wanted = {row.id: row for row in read_journal(journal)}
    here = read_edge(edge)
    there = read_hub(hub) if hub is not None else HubFile()
    at_edge = _edge_findings(wanted, here)
    at_hub = _hub_findings(wanted, here, there) if hub is not None else _Findings()
    return Check(
        written=len(wanted),
        edge_live=len(here.live),
        edge_evicted=len(here.evicted - {row.id for row in here.live}),
        lost=len(at_edge.lost),
        changed=len(at_edge.changed),
        duplicated=len(at_edge.duplicated),
        unjournalled=len(at_edge.unjournalled),
        hub_entries=len(there.rows),
        hub_lost=len(at_hub.lost) + max(0, here.acked_seq - there.seq if hub is not None else 0),
        hub_changed=len(at_hub.changed) + len(at_hub.unjournalled),
        acked=here.acked_seq,
        applied_twice=len(at_hub.duplicated),
        details=(*_details("edge", at_edge), *_details("hub", at_hub)),
    )


def read_edge(directory: Path) -> EdgeFiles:
    """The edge's entries, evictions and what it has yet to send."""
    with _opened(directory / "memory" / "store.db") as memory:
        live = _rows(memory, "SELECT number, id, version, digest, 1 FROM entry")
        acked = memory.execute("SELECT value FROM meta WHERE name = 'acked_seq'").fetchone()
        waiting = {
            int(row[0]) for row in memory.execute("SELECT number FROM outbox WHERE op = ?", (_CREATED,))
        }
        in_flight = memory.execute("SELECT count(*) FROM sent").fetchone()[0]
    with _opened(directory / "state" / "state.db") as state:
        evicted = frozenset(bytes(row[0]) for row in state.execute("SELECT id FROM eviction"))
    if in_flight:
        # The sealed batch is opaque here: whatever it creates may not be at the hub yet.
        waiting |= {row.number for row in live if row.number is not None}
    return EdgeFiles(live, evicted, int(acked[0]) if acked else 0, frozenset(waiting))


def read_hub(path: Path) -> HubFile:
    """The hub's entries of the tenant, and where its cursor stands."""
    with _opened(path) as tenant:
        rows = _rows(tenant, "SELECT number, public_id, version, digest, creations FROM entry")
        seq = tenant.execute("SELECT coalesce(max(seq), 0) FROM cursor").fetchone()[0]
    return HubFile(rows, int(seq))


def _edge_findings(wanted: Mapping[bytes, JournalRow], here: EdgeFiles) -> _Findings:
    """Lost: acknowledged, and neither live nor listed as evicted."""
    found = _against_journal(wanted, here.live)
    held = {row.id for row in here.live} | here.evicted
    found.lost = [row.id for row in wanted.values() if row.acknowledged and row.id not in held]
    return found


def _hub_findings(wanted: Mapping[bytes, JournalRow], here: EdgeFiles, there: HubFile) -> _Findings:
    """Lost: acknowledged, not waiting at the edge, unknown to the hub. Another number is a change."""
    found = _against_journal(wanted, there.rows)
    names: dict[bytes, set[int | None]] = {}
    for row in here.live:
        names.setdefault(row.id, set()).add(row.number)
    found.changed += [
        row.id
        for row in there.rows
        if row.number is not None and row.number not in names.get(row.id, {row.number})
    ]
    found.duplicated += [row.id for row in there.rows if row.creations > 1]
    held = {row.id for row in there.rows}
    found.lost = [
        row.id
        for row in wanted.values()
        if row.acknowledged and row.id not in held and names.get(row.id, set()).isdisjoint(here.unsent)
    ]
    return found


def _against_journal(wanted: Mapping[bytes, JournalRow], rows: tuple[StoredRow, ...]) -> _Findings:
    times = Counter(row.id for row in rows)
    return _Findings(
        changed=[row.id for row in rows if row.id in wanted and _differs(row, wanted[row.id])],
        duplicated=[entry for entry, count in times.items() if count > 1],
        unjournalled=[row.id for row in rows if row.id not in wanted],
    )


def _differs(row: StoredRow, wanted: JournalRow) -> bool:
    return (row.version, row.digest) != (wanted.version, wanted.digest)


def _details(where: str, found: _Findings) -> Iterator[str]:
    groups = {
        "lost": found.lost,
        "changed": found.changed,
        "held or applied twice": found.duplicated,
        "never written by the driver": found.unjournalled,
    }
    for what, ids in groups.items():
        if ids:
            yield f"{where}: {len(ids)} {what}: {', '.join(entry.hex() for entry in ids[:SHOWN_DETAILS])}"


def _rows(database: sqlite3.Connection, sql: str) -> tuple[StoredRow, ...]:
    return tuple(
        StoredRow(number, bytes(entry), int(version), bytes(digest), int(creations))
        for number, entry, version, digest, creations in database.execute(sql)
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    # mode=ro fails on a missing file instead of making one; a WAL left by a crash is still read.
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        yield connection
    finally:
        connection.close()


if __name__ == "__main__":
    main()
