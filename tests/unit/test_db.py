"""shared.host.db: pragmas, transactions, migrations, shrinking, damage and sqlite's errors as ours."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shared.errors import Code, IntegrityError, PermanentError, TransientError
from shared.host import db as db_module
from shared.host.db import Database, open_db
from shared.host.files import directory_bytes

FIRST = "CREATE TABLE entry (number INTEGER PRIMARY KEY, body BLOB NOT NULL);"
SECOND = "CREATE TABLE edge (origin INTEGER NOT NULL REFERENCES entry (number));"


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    folder = tmp_path / "schema"
    folder.mkdir()
    (folder / "001_entries.sql").write_text(FIRST)
    (folder / "README.md").write_text("not a migration")
    return folder


@pytest.fixture
def database(tmp_path: Path, schema: Path) -> Iterator[Database]:
    opened = open_db(tmp_path / "data" / "store.db", schema)
    yield opened
    opened.close()


def fill(database: Database, rows: int, size: int = 2_000) -> None:
    with database.write():
        database.executemany("INSERT INTO entry (body) VALUES (randomblob(?))", [(size,)] * rows)


def pragma(database: Database, name: str) -> object:
    return database.query(f"PRAGMA {name}")[0][0]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("auto_vacuum", 2),
        ("foreign_keys", 1),
        ("secure_delete", 1),
        ("busy_timeout", 5_000),
        ("journal_size_limit", 1 << 20),
        ("wal_autocheckpoint", 256),
        ("page_size", 4_096),
        ("user_version", 1),
    ],
)
def test_a_store_runs_with_the_settings_its_promises_need(
    database: Database, name: str, wanted: object
) -> None:
    assert pragma(database, name) == wanted


def test_settings_survive_a_second_open_and_the_page_size_stays_the_file_s(
    tmp_path: Path, schema: Path
) -> None:
    path = tmp_path / "small.db"
    with closing(open_db(path, schema, page_size_bytes=1_024)) as first:
        assert pragma(first, "wal_autocheckpoint") == 1_024
    with closing(open_db(path, schema, page_size_bytes=4_096)) as second:
        assert pragma(second, "page_size") == 1_024
        assert pragma(second, "auto_vacuum") == 2
        assert pragma(second, "secure_delete") == 1


def test_a_pragma_that_sqlite_does_not_take_is_refused(tmp_path: Path, schema: Path) -> None:
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE made_elsewhere (x)")
    with pytest.raises(PermanentError) as refused:
        open_db(path, schema)
    assert refused.value.code is Code.DISK_ERROR
    assert "auto_vacuum" in refused.value.message


def test_a_write_commits_whole(database: Database, schema: Path) -> None:
    fill(database, 3)
    with closing(open_db(database.path, schema)) as other:
        assert other.query_one("SELECT count(*) FROM entry") == (3,)


def test_a_write_that_raises_leaves_nothing(database: Database) -> None:
    def half() -> None:
        with database.write():
            database.execute("INSERT INTO entry (body) VALUES ('half')")
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        half()
    assert database.query("SELECT * FROM entry") == []
    fill(database, 1)  # and the next write is not inside the old one


def test_counts_and_row_ids_come_back(database: Database) -> None:
    assert database.insert("INSERT INTO entry (body) VALUES ('a')") == 1
    assert database.insert("INSERT INTO entry (body) VALUES ('b')") == 2
    assert database.execute("UPDATE entry SET body = 'c'") == 2
    assert database.executemany("DELETE FROM entry WHERE number = ?", [(1,), (2,), (3,)]) == 2
    assert database.query_one("SELECT * FROM entry") is None


def test_another_thread_may_not_touch_the_connection(database: Database) -> None:
    seen: list[BaseException] = []

    def intrude() -> None:
        try:
            database.query("SELECT 1")
        except sqlite3.ProgrammingError as error:
            seen.append(error)

    thread = threading.Thread(target=intrude)
    thread.start()
    thread.join()
    assert len(seen) == 1


def test_shrink_gives_deleted_rows_back_to_the_file_system(database: Database) -> None:
    fill(database, 1_000)
    folder = database.path.parent
    full_bytes = directory_bytes(folder)
    with database.write():
        database.execute("DELETE FROM entry WHERE number > 50")
    assert directory_bytes(folder) > 0.9 * full_bytes  # nothing comes back by itself
    assert database.shrink()
    assert directory_bytes(folder) < 0.1 * full_bytes


def test_shrink_says_when_a_reader_holds_the_wal(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(database, 1)
    database.query("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(database.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entry").fetchall()
        fill(database, 10)
        assert not database.shrink()
        reader.execute("COMMIT")
        assert database.shrink()


def test_shrink_refuses_to_commit_an_open_write(database: Database) -> None:
    with database.write(), pytest.raises(PermanentError):
        database.shrink()


def test_deleted_content_is_gone_from_the_file(database: Database) -> None:
    secret = b"the spare key is under the blue pot"
    database.execute("INSERT INTO entry (body) VALUES (?)", (secret,))
    database.shrink()
    assert secret in database.path.read_bytes()
    database.execute("DELETE FROM entry")
    database.shrink()
    assert secret not in database.path.read_bytes()


def test_newer_scripts_run_once_and_in_order(database: Database, schema: Path) -> None:
    fill(database, 1)
    (schema / "002_edges.sql").write_text(SECOND)
    for _ in range(2):
        with closing(open_db(database.path, schema)) as migrated:
            assert pragma(migrated, "user_version") == 2
            assert migrated.query("SELECT * FROM edge") == []


def test_a_script_that_fails_changes_nothing(database: Database, schema: Path) -> None:
    (schema / "002_broken.sql").write_text(f"{SECOND}\nCREATE TABLE entry (twice);")
    with pytest.raises(sqlite3.OperationalError):
        open_db(database.path, schema)
    assert pragma(database, "user_version") == 1
    assert database.query("SELECT name FROM sqlite_schema WHERE name = 'edge'") == []


def test_a_store_of_a_newer_version_is_refused_untouched(database: Database, schema: Path) -> None:
    database.query("PRAGMA user_version = 9")
    with pytest.raises(PermanentError) as refused:
        open_db(database.path, schema)
    assert refused.value.code is Code.SCHEMA_TOO_NEW
    assert refused.value.facts["found"] == 9
    assert refused.value.facts["known"] == 1
    assert pragma(database, "user_version") == 9


@pytest.mark.parametrize("name", ["003_gap.sql", "002-edges.sql", "extra.sql"])
def test_a_gap_in_the_scripts_is_refused(tmp_path: Path, schema: Path, name: str) -> None:
    (schema / name).write_text(SECOND)
    with pytest.raises(PermanentError, match="count up"):
        open_db(tmp_path / "new.db", schema)


def test_a_damaged_page_is_found_at_open(database: Database, schema: Path) -> None:
    fill(database, 200)
    database.close()
    with database.path.open("r+b") as file:
        file.seek(4_096 * 3)
        file.write(b"\xff" * 4_096 * 4)
    with pytest.raises(IntegrityError) as refused:
        open_db(database.path, schema)
    assert refused.value.code is Code.CORRUPT
    assert "backup" in refused.value.hint


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path, schema: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(IntegrityError) as refused:
        open_db(path, schema)
    assert refused.value.code is Code.CORRUPT
    assert path.read_bytes() == b"something else entirely" * 100


def test_integrity_check_sees_a_reference_to_nothing(database: Database, schema: Path) -> None:
    (schema / "002_edges.sql").write_text(SECOND)
    with closing(open_db(database.path, schema)) as migrated:
        migrated.integrity_check()
        migrated.query("PRAGMA foreign_keys = 0")
        migrated.execute("INSERT INTO edge (origin) VALUES (404)")
        migrated.quick_check()
        with pytest.raises(IntegrityError) as refused:
            migrated.integrity_check()
    assert refused.value.code is Code.CORRUPT


def test_a_reference_to_nothing_is_refused_at_the_write(database: Database, schema: Path) -> None:
    (schema / "002_edges.sql").write_text(SECOND)
    with (
        closing(open_db(database.path, schema)) as migrated,
        pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"),
    ):
        migrated.execute("INSERT INTO edge (origin) VALUES (404)")


def test_a_backup_is_whole_private_and_independent(database: Database, schema: Path, tmp_path: Path) -> None:
    fill(database, 20)
    copy = tmp_path / "backups" / "copy.db"
    copy.parent.mkdir()
    database.backup_to(copy)
    assert [item.name for item in copy.parent.iterdir()] == ["copy.db"]
    assert copy.stat().st_mode & 0o077 == 0
    database.execute("DELETE FROM entry")
    with closing(open_db(copy, schema)) as restored:
        assert restored.query_one("SELECT count(*) FROM entry") == (20,)


def test_a_second_writer_gets_store_locked(
    database: Database, schema: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db_module, "BUSY_TIMEOUT_MS", 1)
    with (
        closing(open_db(database.path, schema)) as other,
        database.write(),
        pytest.raises(TransientError) as refused,
        other.write(),
    ):
        pass
    assert refused.value.code is Code.STORE_LOCKED


def test_a_full_disk_rolls_back_and_the_store_goes_on(database: Database) -> None:
    fill(database, 1)
    pages = database.query("PRAGMA page_count")[0][0]
    database.query(f"PRAGMA max_page_count = {pages + 2}")  # SQLite's own way to say: the disk is full
    with pytest.raises(TransientError) as refused:
        fill(database, 100)
    assert refused.value.code is Code.DISK_FULL
    assert database.query_one("SELECT count(*) FROM entry") == (1,)
    database.query("PRAGMA max_page_count = 100000")
    fill(database, 100)


@pytest.mark.parametrize(
    ("message", "kind", "code"),
    [
        ("database or disk is full", TransientError, Code.DISK_FULL),
        ("disk I/O error", TransientError, Code.DISK_ERROR),
        ("unable to open database file", TransientError, Code.DISK_ERROR),
        ("attempt to write a readonly database", TransientError, Code.DISK_ERROR),
        ("database is locked", TransientError, Code.STORE_LOCKED),
        ("database table is locked: entry", TransientError, Code.STORE_LOCKED),
        ("database disk image is malformed", IntegrityError, Code.CORRUPT),
        ("file is not a database", IntegrityError, Code.CORRUPT),
    ],
)
def test_every_known_message_becomes_our_error(message: str, kind: type[Exception], code: Code) -> None:
    translated = db_module._translate(sqlite3.OperationalError(message), Path("store.db"))
    assert type(translated) is kind
    assert translated is not None
    assert translated.code is code
    assert translated.hint


def test_our_own_mistakes_are_not_dressed_up(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        database.query("SELECT * FROM nowhere")


def test_a_directory_that_cannot_be_opened_is_a_disk_error(tmp_path: Path, schema: Path) -> None:
    (tmp_path / "store.db").mkdir()
    with pytest.raises(TransientError) as refused:
        open_db(tmp_path / "store.db", schema)
    assert refused.value.code is Code.DISK_ERROR


def test_a_path_below_a_file_is_a_disk_error(tmp_path: Path, schema: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TransientError) as refused:
        open_db(tmp_path / "file" / "store.db", schema)
    assert refused.value.code is Code.DISK_ERROR


def test_the_store_and_its_wal_are_the_owner_s_alone(database: Database) -> None:
    fill(database, 1)
    modes = {item.name: item.stat().st_mode & 0o777 for item in database.path.parent.iterdir()}
    assert set(modes) == {"store.db", "store.db-wal", "store.db-shm"}
    assert set(modes.values()) == {0o600}
