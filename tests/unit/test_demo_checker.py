"""The checker finds what is lost, changed, doubled or foreign, from hand-made files with the real schemas."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import edge_agent
import hub
from crystalmem.demo.checker import check
from crystalmem.demo.journal import Journal, public_id, read_journal, text_digest
from crystalmem.demo.processes import run_checker
from crystalmem.demo.results import Check
from edge_agent.outbox import Op

NAMES = ("e1", "e2", "e3", "e4")


class Files:
    """A journal of four acknowledged writes, an edge that holds them and a hub that was told of them."""

    def __init__(self, directory: Path) -> None:
        self.journal = directory / "journal.jsonl"
        self.edge = directory / "edge"
        self.memory = Table(self.edge / "memory" / "store.db", edge_agent, "schema")
        self.state = Table(self.edge / "state" / "state.db", edge_agent, "schema_state")
        self.hub = Table(directory / "demo.db", hub, "schema/tenant")
        with Journal(self.journal) as journal:
            for name in NAMES:
                journal.intend(public_id(name), 1, text_digest(name))
                journal.acknowledge(public_id(name), 1)
        for number, name in enumerate(NAMES, start=1):
            self.add_to_edge(number, name)
            self.add_to_hub(number, name)
        self.memory.insert("meta", name="acked_seq", value=4)
        self.hub.insert("cursor", edge="demo-edge", seq=4)

    def add_to_edge(self, number: int, name: str) -> None:
        self.memory.insert("entry", number=number, id=public_id(name), digest=text_digest(name), version=1)

    def add_to_hub(self, number: int, name: str) -> None:
        known = {"public_id": public_id(name), "digest": text_digest(name), "number": number}
        self.hub.insert("entry", **known, edge="demo-edge", version=1, creations=1)

    def evict(self, name: str) -> None:
        self.memory.run("DELETE FROM entry WHERE id = ?", public_id(name))
        self.state.insert("eviction", id=public_id(name))

    def check(self) -> Check:
        return check(self.journal, self.edge, self.hub.path)


class Table:
    """One file with the real schema; columns that a test does not name get a neutral value."""

    def __init__(self, path: Path, package: ModuleType, schema: str) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection:
            for script in sorted((Path(str(package.__file__)).parent / schema).glob("*.sql")):
                connection.executescript(script.read_text("utf-8"))

    def insert(self, table: str, **known: object) -> None:
        with self._open() as connection:
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
            neutral = {"TEXT": "", "BLOB": b"", "REAL": 0.0, "INTEGER": 0}
            row = {
                name: neutral.get(kind, b"")
                for _, name, kind, required, _, key in columns
                if required and not key
            }
            row.update(known)
            names, marks = ", ".join(row), ", ".join("?" for _ in row)
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))

    def run(self, statement: str, *values: object) -> None:
        with self._open() as connection:
            connection.execute(statement, values)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA synchronous = OFF")  # only speed: these files need not survive a crash
        with connection:
            yield connection
        connection.close()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whole_files_pass(files: Files) -> None:
    found = files.check()
    assert not found.broken
    assert (found.written, found.edge_live, found.hub_entries, found.acked) == (4, 4, 4, 4)
    assert found.details == ()


def _edge_row_gone(files: Files) -> None:
    files.memory.run("DELETE FROM entry WHERE number = 2")


def _edge_digest_changed(files: Files) -> None:
    files.memory.run("UPDATE entry SET digest = ? WHERE number = 2", text_digest("other"))


def _edge_version_changed(files: Files) -> None:
    files.memory.run("UPDATE entry SET version = 2 WHERE number = 2")


def _edge_row_twice(files: Files) -> None:
    files.add_to_edge(9, "e2")


def _edge_row_foreign(files: Files) -> None:
    files.add_to_edge(9, "never written")


def _hub_row_gone(files: Files) -> None:
    files.hub.run("DELETE FROM entry WHERE number = 2")


def _hub_digest_changed(files: Files) -> None:
    files.hub.run("UPDATE entry SET digest = x'00' WHERE number = 2")


def _hub_number_of_another(files: Files) -> None:
    files.hub.run("UPDATE entry SET number = 77 WHERE number = 2")


def _hub_applied_twice(files: Files) -> None:
    files.hub.run("UPDATE entry SET creations = 2 WHERE number = 2")


def _hub_version_ahead(files: Files) -> None:
    files.hub.run("UPDATE entry SET version = 2 WHERE number = 2")


def _hub_lost_its_tail(files: Files) -> None:
    files.hub.run("UPDATE cursor SET seq = 3")


def _hub_row_foreign(files: Files) -> None:
    files.add_to_hub(9, "never written")


@pytest.mark.parametrize(
    ("damage", "counted"),
    [
        (_edge_row_gone, "lost"),
        (_edge_digest_changed, "changed"),
        (_edge_version_changed, "changed"),
        (_edge_row_twice, "duplicated"),
        (_edge_row_foreign, "unjournalled"),
        (_hub_row_gone, "hub_lost"),
        (_hub_digest_changed, "hub_changed"),
        (_hub_number_of_another, "hub_changed"),
        (_hub_version_ahead, "hub_changed"),
        (_hub_applied_twice, "applied_twice"),
        (_hub_lost_its_tail, "hub_lost"),
        (_hub_row_foreign, "hub_changed"),
    ],
)
def test_each_damage_is_counted_once_and_in_its_place(
    files: Files, damage: Callable[[Files], None], counted: str
) -> None:
    damage(files)
    found = files.check()
    assert found.broken
    fields = ("lost", "changed", "duplicated", "unjournalled", "hub_lost", "hub_changed", "applied_twice")
    assert {name: getattr(found, name) for name in fields if getattr(found, name)} == {counted: 1}


def test_an_evicted_entry_is_not_lost_and_the_hub_keeps_it(files: Files) -> None:
    files.evict("e2")
    found = files.check()
    assert not found.broken
    assert (found.edge_live, found.edge_evicted) == (3, 1)


def test_a_restored_entry_counts_as_live_only(files: Files) -> None:
    files.evict("e2")
    files.add_to_edge(2, "e2")
    found = files.check()
    assert (found.broken, found.edge_live, found.edge_evicted) == (False, 4, 0)


def test_what_still_waits_at_the_edge_is_not_lost(files: Files) -> None:
    _hub_row_gone(files)
    files.memory.insert("outbox", seq=9, number=2, op=int(Op.CREATED))
    assert files.check().hub_lost == 0
    files.memory.run("UPDATE outbox SET op = ?", int(Op.STATE))
    assert files.check().hub_lost == 1


def test_a_write_that_was_never_answered_may_be_there_or_not(files: Files) -> None:
    with Journal(files.journal) as journal:
        journal.intend(public_id("e5"), 1, text_digest("e5"))
    assert not files.check().broken
    files.add_to_edge(5, "e5")
    files.add_to_hub(5, "e5")
    assert not files.check().broken


def test_without_a_hub_only_the_edge_is_judged(files: Files) -> None:
    files.hub.path.unlink()
    found = check(files.journal, files.edge, None)
    assert (found.broken, found.hub_entries) == (False, 0)


def test_it_runs_as_a_program_and_changes_no_byte(files: Files) -> None:
    _edge_row_gone(files)
    stores = (files.memory.path, files.state.path, files.hub.path)
    before = [path.read_bytes() for path in stores]
    assert run_checker(files.journal, files.edge, files.hub.path) == files.check()
    assert [path.read_bytes() for path in stores] == before


def test_a_missing_store_is_an_error_and_not_an_empty_one(files: Files) -> None:
    files.memory.path.unlink()
    with pytest.raises(sqlite3.OperationalError):
        files.check()
    assert not files.memory.path.exists()


# --- the journal -----------------------------------------------------------------------------------------


def test_an_intent_is_on_the_disk_before_the_call(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.intend(public_id("e1"), 1, text_digest("e1"))
        row = json.loads(path.read_bytes())
    assert row == {"intend": public_id("e1").hex(), "version": 1, "digest": text_digest("e1").hex()}


def test_a_line_cut_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.intend(public_id("e1"), 1, text_digest("e1"))
        journal.acknowledge(public_id("e1"), 1)
        journal.intend(public_id("e2"), 1, text_digest("e2"))
    path.write_bytes(path.read_bytes()[:-5])
    rows = read_journal(path)
    assert [(row.id, row.acknowledged) for row in rows] == [(public_id("e1"), True)]


def test_public_ids_are_stable_and_distinct() -> None:
    assert public_id("e1").hex() == "5492ac4673bba984f2edffdbbe8c7368"
    assert public_id("e1") != public_id("e2")
