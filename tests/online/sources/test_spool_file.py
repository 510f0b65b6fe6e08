"""SpoolFile: created atomically, opened by several processes, with errors that state what to do."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onion.checkpointing.atomic_files import Files, through
from onion.errors import DataError
from onion.online.sources import spool_file
from onion.online.sources.spool_file import BusyError, NoSpaceError, SpoolFile, explained


@pytest.fixture
def path(tmp_path):
    return tmp_path / "samples.db"


@pytest.fixture
def file(path):
    file = SpoolFile(path, "FULL")
    yield file
    file.close()


def put(file, text="1", times=1):
    with file.transaction():
        file.execute("INSERT INTO samples (data, at) VALUES (?, 0)", *[(text,)] * times)


def test_it_is_created_by_its_first_use(path, file):
    assert not path.exists()
    assert file.last() == 0
    assert file.rows("SELECT one, format, capacity, read FROM meta") == [(1, 1, 100_000, 0)]
    assert file.value("PRAGMA journal_mode") == "wal"
    assert file.value("PRAGMA auto_vacuum") == 2
    assert file.value("PRAGMA synchronous") == 2


def test_a_file_without_a_byte_counts_as_none(path, file):
    path.touch()
    assert file.last() == 0


def test_several_threads_may_create_it_at_once(path, file):
    def open_and_put(_):
        file = SpoolFile(path, "FULL")
        put(file)
        file.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(open_and_put, range(16)))
    assert file.last() == 16
    file.close()
    assert [each.name for each in path.parent.iterdir()] == ["samples.db"]


def test_the_log_of_a_removed_file_is_not_taken_for_its_own(path, file):
    put(file)
    log = path.with_name("samples.db-wal")
    rest = log.read_bytes()
    file.close()
    path.unlink()
    log.write_bytes(rest)
    assert file.last() == 0


def test_a_failure_while_it_is_created_leaves_none(path, file):
    class Refusing(Files):
        def rename(self, source, target):
            raise OSError(28, "No space left on device")

    with through(Refusing()), pytest.raises(DataError, match=r"cannot be created .No space left"):
        file.last()
    assert not path.exists()
    assert file.last() == 0


def test_a_transaction_is_atomic(file):
    def put_and_fail():
        with file.transaction():
            file.execute("INSERT INTO samples (data, at) VALUES (?, 0)", ("1",))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put_and_fail()
    assert file.last() == 0
    put(file)
    assert file.last() == 1


def test_pages_are_returned_to_the_disk(path, file):
    put(file, "x" * 10_000, times=100)
    with file.transaction():
        file.execute("DELETE FROM samples", ())
    free = file.value("PRAGMA freelist_count")
    file.shrink(100)
    assert file.value("PRAGMA freelist_count") == free - 100
    file.shrink(1000)
    file.close()
    assert path.stat().st_size < 50_000


def test_a_locked_file_is_an_error(path, file):
    file.last()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError, match="locked; another process has locked it for long"), file.transaction(0.0):
        pass
    other.execute("ROLLBACK")
    other.close()
    put(file)


def test_a_short_wait_is_for_one_change_only(file):
    with file.transaction(0.0):
        assert file.value("PRAGMA busy_timeout") == 30_000
    file.shrink(1, 0.0)
    assert file.value("PRAGMA busy_timeout") == 30_000


def test_a_full_disk_is_an_error_and_changes_nothing(file):
    file.last()
    file.rows(f"PRAGMA max_page_count = {file.value('PRAGMA page_count')}")
    with pytest.raises(NoSpaceError, match="full; free some space on the disk"):
        put(file, "x" * 100_000)
    file.rows("PRAGMA max_page_count = 1000000")
    assert file.last() == 0


def text(path):
    path.write_text("no database at all, " * 100)


def other_tables(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE meta (format)")
    database.close()


def newer(path):
    file = SpoolFile(path, "FULL")
    file.execute("UPDATE meta SET format = ?", (2,))
    file.close()


def torn(path):
    file = SpoolFile(path, "FULL")
    put(file, "x" * 1000, times=100)
    file.close()
    with path.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xff" * (path.stat().st_size - 4096))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (text, "another kind of file; choose another path"),
        (other_tables, "this SQLite file is no spool; choose another path"),
        (newer, "has format 2, and this onion knows 1"),
        (torn, "malformed; the file is damaged"),
        (Path.mkdir, "check the disk, and who may read"),
    ],
)
def test_another_kind_of_file_is_an_error(path, file, make, message):
    make(path)
    with pytest.raises(DataError, match=message) as caught:
        file.rows("SELECT * FROM samples")
    assert str(path) in str(caught.value)


def test_another_kind_of_file_is_not_changed(path, file):
    other_tables(path)
    before = path.read_bytes()
    with pytest.raises(DataError):
        file.last()
    assert path.read_bytes() == before


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(
        DataError, match=r"cannot be created \(No such file or directory\); check that its folder exists"
    ):
        SpoolFile(tmp_path / "none" / "s.db", "FULL").last()


@pytest.mark.parametrize("error", ["attempt to write a readonly database", "something new"])
def test_every_error_of_sqlite_is_a_data_error(path, error):
    with pytest.raises(DataError, match=error), explained(path):
        raise sqlite3.OperationalError(error)


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_that_was_removed_or_replaced_is_noticed(path, file, replace):
    file.check_not_replaced()
    file.last()
    file.check_not_replaced()
    path.unlink()
    if replace:
        spool_file.make(path)
    with pytest.raises(DataError, match="removed or replaced while it was in use"):
        file.check_not_replaced()


def test_it_is_opened_again_after_it_was_closed(file):
    put(file)
    file.close()
    file.close()
    assert file.last() == 1


def test_a_forked_child_opens_its_own(path, file):
    code = (
        "import os, sys\n"
        "from onion.online.sources.spool_file import SpoolFile\n"
        "file = SpoolFile(sys.argv[1], 'FULL')\n"
        "def put():\n"
        "    with file.transaction(): file.execute('INSERT INTO samples (data, at) VALUES (?, 0)', ('1',))\n"
        "put()\n"
        "before = file._database\n"
        "if child := os.fork():\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "    assert file._database is before\n"
        "    put()\n"
        "else:\n"
        "    put()\n"
        "    assert file._database is not before\n"
        "    file.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert file.last() == 3
