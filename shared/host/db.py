"""One SQLite connection owned by one thread: pragmas, migrations, checks, and sqlite's errors as ours."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import Code, CrystalError, IntegrityError, PermanentError, TransientError

if TYPE_CHECKING:
    from importlib.abc import Traversable

Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any]

# Longer than any chunk of ours, far shorter than the watchdog's 30 s: a stuck lock must surface as an error.
BUSY_TIMEOUT_MS = 5_000
# The physical budget counts the WAL, so it may not stay above one chunk of a sweep.
WAL_LIMIT_BYTES = 1 << 20
AUTO_VACUUM_INCREMENTAL = 2
SYNCHRONOUS_FULL = 2
RESTORE_HINT = (
    "Keep the file as evidence, then restore the newest backup or move the file aside to start empty"
)
_MIGRATION_NAME = re.compile(r"(\d{3})_[a-z0-9_]+\.sql")


class Database:
    """A connection in autocommit mode; use it only on the thread that opened it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """BEGIN IMMEDIATE; commits when the block ends, rolls back when it or the commit raises."""
        self._run("BEGIN IMMEDIATE")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            # SQLite has already rolled back by itself after some errors (disk full, I/O).
            if self._connection.in_transaction:
                self._run("ROLLBACK")
            raise

    def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement; the number of rows it changed."""
        return self._run(sql, parameters).rowcount

    def insert(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one INSERT; the rowid it made."""
        return self._run(sql, parameters).lastrowid or 0

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> int:
        """Run one statement for every row; the number of rows changed in all."""
        with _translated(self.path):
            return self._connection.executemany(sql, rows).rowcount

    def query(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row, copied out: no read transaction outlives the call."""
        with _translated(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def query_one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""
        rows = self.query(sql, parameters)
        return rows[0] if rows else None

    def script(self, sql: str) -> None:
        """Run several statements, each to its end; the caller brings its own BEGIN and COMMIT."""
        with _translated(self.path):
            self._connection.executescript(sql)

    def shrink(self) -> bool:
        """Give free pages back to the file system; False where a reader kept the WAL from being emptied."""
        if self._connection.in_transaction:
            raise PermanentError(Code.INTERNAL, "shrink inside a transaction would commit it")
        # executescript steps the pragma to its end; execute() frees one page a call.
        self.script("PRAGMA incremental_vacuum")
        busy, _, _ = self.query("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        return not busy

    def quick_check(self) -> None:
        """Raise IntegrityError(CORRUPT) when the file's pages do not hold together."""
        self._check("PRAGMA quick_check(1)")

    def integrity_check(self) -> None:
        """quick_check plus indexes, unique constraints and foreign keys."""
        self._check("PRAGMA integrity_check(1)")
        if self.query("PRAGMA foreign_key_check"):
            raise IntegrityError(
                Code.CORRUPT, "a foreign key points nowhere", hint=RESTORE_HINT, path=str(self.path)
            )

    def backup_to(self, path: Path) -> None:
        """A checked copy of the store as of now; `path` appears only when it is whole."""
        partial = path.with_name(path.name + ".partial")
        partial.unlink(missing_ok=True)
        # The copy holds memory content: nobody else may read it while it is being written either.
        partial.touch(mode=0o600)
        with _translated(partial), contextlib.closing(sqlite3.connect(partial)) as target:
            self._connection.backup(target)
            Database(target, partial).integrity_check()
        partial.replace(path)

    def close(self) -> None:
        """Close the connection; the last one to close removes the WAL."""
        with _translated(self.path):
            self._connection.close()

    def _run(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        with _translated(self.path):
            return self._connection.execute(sql, parameters)

    def _check(self, pragma: str) -> None:
        finding = self.query(pragma)[0][0]
        if finding != "ok":
            raise IntegrityError(
                Code.CORRUPT, "the store is damaged", hint=RESTORE_HINT, path=str(self.path), finding=finding
            )


def open_db(path: Path, schema: Traversable, *, page_size_bytes: int = 4096) -> Database:
    """Open or make the store at `path`, checked and migrated by the NNN_*.sql files of `schema`.

    `page_size_bytes` counts for a new file only.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Memory content: the owner's alone from its first byte on; the WAL inherits the mode.
        path.touch(mode=0o600)
    except OSError as error:
        raise _disk_error(path, str(error)) from error
    with _translated(path):
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
    database = Database(connection, path)
    try:
        _prepare(database, page_size_bytes)
        _migrate(database, schema)
    except BaseException:
        connection.close()
        raise
    return database


def _prepare(database: Database, page_size_bytes: int) -> None:
    fresh = database.query("PRAGMA page_count")[0][0] == 0
    if fresh:
        # Both are fixed by the first write; switching to WAL is such a write.
        _pragma(database, "page_size", page_size_bytes)
        _pragma(database, "auto_vacuum", AUTO_VACUUM_INCREMENTAL)
    page_size_bytes = database.query("PRAGMA page_size")[0][0]
    _pragma(database, "journal_mode", "wal")
    _pragma(database, "synchronous", SYNCHRONOUS_FULL)
    _pragma(database, "foreign_keys", 1)
    _pragma(database, "secure_delete", 1)
    _pragma(database, "busy_timeout", BUSY_TIMEOUT_MS)
    _pragma(database, "journal_size_limit", WAL_LIMIT_BYTES)
    _pragma(database, "wal_autocheckpoint", WAL_LIMIT_BYTES // page_size_bytes)
    _expect(database, "auto_vacuum", AUTO_VACUUM_INCREMENTAL)
    if not fresh:
        database.quick_check()


def _pragma(database: Database, name: str, value: int | str) -> None:
    database.query(f"PRAGMA {name} = {value}")
    _expect(database, name, value)


def _expect(database: Database, name: str, value: int | str) -> None:
    found = database.query(f"PRAGMA {name}")[0][0]
    if found != value:
        raise PermanentError(
            Code.DISK_ERROR,
            f"SQLite did not accept PRAGMA {name}",
            hint="Put the data on a local file system that supports WAL and locks",
            path=str(database.path),
            wanted=value,
            found=found,
        )


def _migrate(database: Database, schema: Traversable) -> None:
    version = database.query("PRAGMA user_version")[0][0]
    scripts = _migrations(schema)
    if version > len(scripts):
        raise PermanentError(
            Code.SCHEMA_TOO_NEW,
            "the store was written by a newer version",
            hint="Install that version again, or restore a backup that was made before the upgrade",
            path=str(database.path),
            found=version,
            known=len(scripts),
        )
    for number, sql in enumerate(scripts[version:], start=version + 1):
        # A script that fails leaves its transaction open; closing the connection rolls it back.
        database.script(f"BEGIN IMMEDIATE;\n{sql}\n;PRAGMA user_version = {number};\nCOMMIT;")


def _migrations(schema: Traversable) -> list[str]:
    """The scripts in order; a gap or a foreign name is a packaging fault."""
    files = sorted(
        (item for item in schema.iterdir() if item.name.endswith(".sql")), key=lambda item: item.name
    )
    for expected, item in enumerate(files, start=1):
        match = _MIGRATION_NAME.fullmatch(item.name)
        if match is None or int(match[1]) != expected:
            raise PermanentError(
                Code.INTERNAL, "schema files must count up from 001", found=item.name, expected=expected
            )
    return [item.read_text(encoding="utf-8") for item in files]


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """The one place where sqlite's errors become ours; constraints and mistakes in our SQL pass."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        translated = _translate(error, path)
        if translated is None:
            raise
        raise translated from error


def _translate(error: sqlite3.DatabaseError, path: Path) -> CrystalError | None:
    # By message, because Python 3.10 does not carry SQLite's result code.
    text = str(error)
    if "disk is full" in text:
        return TransientError(
            Code.DISK_FULL, "no space left for the store", hint="Free disk space", path=str(path)
        )
    if "malformed" in text or "not a database" in text:
        return IntegrityError(
            Code.CORRUPT, "the store is damaged", hint=RESTORE_HINT, path=str(path), finding=text
        )
    if re.search(r"\b(is locked|is busy)\b", text):
        return TransientError(
            Code.STORE_LOCKED,
            "the store is held by another process",
            hint="Stop the other process that has the file open",
            path=str(path),
        )
    if re.search(r"I/O error|unable to open|readonly database", text):
        return _disk_error(path, text)
    return None


def _disk_error(path: Path, finding: str) -> TransientError:
    return TransientError(
        Code.DISK_ERROR,
        "the store cannot be read or written",
        hint="Check the disk and the rights of the data directory",
        path=str(path),
        finding=finding,
    )
