"""The file of a spool: how it is made, opened, read and changed, and what its errors mean."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from onion.checkpointing.atomic_files import PARTIAL, rename, sync_folder
from onion.checkpointing.lock import locked
from onion.errors import DataError
from onion.paths import anchored

FORMAT = 1
APPLICATION = 0x6F6E696F  # in the file's header; distinguishes spools from other SQLite files
CAPACITY = 100_000  # samples that may wait in a file that no Spool has opened yet
BUSY_SECONDS = 30.0  # seconds to wait for another process that changes the file
LOG_BYTES = 64 * 2**20  # maximum size of the write-ahead log after it has been emptied

_SCHEMA = """
PRAGMA auto_vacuum = INCREMENTAL;
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL, capacity INTEGER NOT NULL, read INTEGER NOT NULL
);
CREATE TABLE samples (id INTEGER PRIMARY KEY AUTOINCREMENT, data TEXT NOT NULL, at REAL NOT NULL);
INSERT INTO sqlite_sequence VALUES ('samples', 0);
CREATE TABLE marks (producer TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;
"""

_ORIGIN = """
CREATE TABLE origin (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, removed INTEGER NOT NULL, removed_at REAL NOT NULL
)
"""
"""The id of the file, and the last sample that was removed from it. Files of earlier versions have none."""


_GIVE = "INSERT INTO origin VALUES (1, ?, 0, 0)"


class BusyError(DataError):
    """Another process holds the file."""


class NoSpaceError(DataError):
    """The disk is full."""


class SpoolFile:
    """A spool's file, opened at its first use, and created if needed.

    Args:
        path: its folder must exist.
        synchronous: SQLite's setting: ``FULL``: a change is on disk before it counts; ``NORMAL``: some time later, and
            never partially.

    Raises:
        DataError: in all methods: the file cannot be created, opened, read or changed; subclasses are BusyError and
            NoSpaceError.
    """

    def __init__(self, path: str | Path, synchronous: str) -> None:
        self.path = anchored(path)
        self._synchronous = synchronous
        self._database: sqlite3.Connection | None = None
        self._process = 0
        self._inherited: list[sqlite3.Connection] = []

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        with explained(self.path):
            return self._opened().execute(sql, values).fetchall()

    def value(self, sql: str, *values: Any) -> Any:
        """Return the first value of a query; None if it has no rows."""
        rows = self.rows(sql, *values)
        return rows[0][0] if rows else None

    def execute(self, sql: str, *rows: tuple[Any, ...]) -> None:
        """Execute a change, once for each row of values."""
        with explained(self.path):
            self._opened().executemany(sql, rows)

    @contextmanager
    def transaction(self, patience: float = BUSY_SECONDS) -> Iterator[None]:
        """Make all changes inside atomic; wait for another writer up to this many seconds."""
        with self._patient(patience) as database:
            database.execute("BEGIN IMMEDIATE")
        try:
            yield
            with explained(self.path):
                database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk may have caused a rollback already
                database.execute("ROLLBACK")
            raise

    def shrink(self, pages: int, patience: float = BUSY_SECONDS) -> None:
        """Return unused pages to the disk."""
        with self._patient(patience) as database:
            # A script, as execute() would free a single page: it takes one step of a statement that returns no rows.
            database.executescript(f"PRAGMA incremental_vacuum({pages})")

    def last(self) -> int:
        """Return the id of the last sample ever put in; 0 before the first."""
        return int(self.value("SELECT seq FROM sqlite_sequence WHERE name = 'samples'") or 0)

    def origin(self) -> str | None:
        """Return the file's random id, 16 hex digits; None: it was created by an earlier version."""
        if self.value("SELECT count(*) FROM sqlite_master WHERE name = 'origin'") == 0:
            return None
        return str(self.value("SELECT id FROM origin"))

    def ensure_origin(self) -> str:
        """Give the file an id unless it has one, and return the id."""
        if (there := self.origin()) is not None:
            return there
        with self.transaction():
            if self.origin() is None:  # otherwise another process was faster
                self.rows(_ORIGIN)
                self.execute(_GIVE, (_random(),))
        return self.ensure_origin()

    def written_at(self, number: int) -> float | None:
        """Return when a sample was put in, in seconds since 1970; None: removed, and not as the last one."""
        at: float | None = self.value("SELECT at FROM samples WHERE id = ?", number)
        if at is None:
            at = self.value("SELECT removed_at FROM origin WHERE removed = ?", number)
        return at

    def check_not_replaced(self) -> None:
        """Require that the open file is still the one at the path; otherwise raise DataError."""
        try:
            there = self.path.stat()
        except OSError:
            there = None
        if self._database is not None and (there is None or (there.st_dev, there.st_ino) != self._place):
            raise DataError(
                f"{self.path} was removed or replaced while it was in use; stop its writers, restore the file with "
                "those beside it (-wal, -shm), and start again."
            )

    def close(self) -> None:
        """Close the file."""
        database, self._database = self._database, None
        if database is not None and self._process == os.getpid():
            with explained(self.path):
                database.close()

    @contextmanager
    def _patient(self, seconds: float) -> Iterator[sqlite3.Connection]:
        """Wait up to this many seconds for another process, only inside."""
        with explained(self.path):
            database = self._opened()
            database.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
            try:
                yield database
            finally:
                database.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")

    def _opened(self) -> sqlite3.Connection:
        if self._database is not None and self._process != os.getpid():
            self._inherited.append(self._database)  # the parent's: a forked child must neither use nor close it
            self._database = None
        if self._database is None:
            self._database, self._process = self._open(), os.getpid()
            there = self.path.stat()
            self._place = there.st_dev, there.st_ino
        return self._database

    def _open(self) -> sqlite3.Connection:
        if _is_missing(self.path):
            make(self.path)
        address = f"{self.path.as_uri()}?mode=rw"
        database = sqlite3.connect(address, BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
        try:
            _check_format(self.path, database)
            database.execute(f"PRAGMA synchronous = {self._synchronous}")
            database.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        except BaseException:
            database.close()
            raise
        return database


def make(path: Path) -> None:
    """Create an empty spool atomically, unless there is one; raise DataError if that is impossible."""
    temporary = path.with_name(f".{path.name}{PARTIAL}")
    try:
        with locked(path.parent, wait=True):
            if not _is_missing(path):
                return
            # The log of a removed file would be taken for this one's.
            for rest in (temporary, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
                rest.unlink(missing_ok=True)
            database = sqlite3.connect(temporary, isolation_level=None)
            try:
                database.executescript(_SCHEMA)
                database.execute("INSERT INTO meta VALUES (1, ?, ?, 0)", (FORMAT, CAPACITY))
                database.execute(_ORIGIN)
                database.execute(_GIVE, (_random(),))
                database.execute(f"PRAGMA application_id = {APPLICATION}")
                database.execute("PRAGMA journal_mode = WAL")
            finally:
                database.close()
            rename(temporary, path)
            sync_folder(path.parent)
    except OSError as error:
        raise DataError(
            f"{path}: the spool cannot be created ({error.strerror}); check that its folder exists, and who may write "
            "to it."
        ) from error


def _random() -> str:
    return secrets.token_hex(8)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Convert SQLite's errors into DataError."""
    try:
        yield
    except sqlite3.Error as error:
        for sign, kind, remedy in _MEANINGS:
            if sign in str(error):
                raise kind(f"{path}: {error}; {remedy}.") from error
        raise DataError(f"{path}: {error}; check the disk, and who may read and write it.") from error


_MEANINGS: tuple[tuple[str, type[DataError], str], ...] = (
    ("locked", BusyError, "another process has locked it for long: end that process, or wait for it"),
    ("is full", NoSpaceError, "free some space on the disk"),
    ("not a database", DataError, "this is another kind of file; choose another path for the spool"),
    ("malformed", DataError, "the file is damaged: restore a complete copy, or remove it to start again"),
    ("no such table", DataError, "the file is damaged: restore a complete copy, or remove it to start again"),
    ("readonly", DataError, "reading a spool changes the file: let this user write to it and its folder"),
)
"""Parts of SQLite's messages: its error codes are available from Python 3.11 on only."""


def _is_missing(path: Path) -> bool:
    """Return whether there is no file; as for SQLite, an empty one counts as none."""
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; check the path, and who may read it.") from error


def _check_format(path: Path, database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise DataError(f"{path}: this SQLite file is no spool; choose another path for the spool.")
    (form,) = database.execute("SELECT format FROM meta").fetchone() or (None,)
    if form != FORMAT:
        raise DataError(
            f"{path}: this spool has format {form}, and this onion knows {FORMAT}; update onion, or use a new file."
        )
