"""Spool: samples in order, positions, bounds, and removal."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from onion.errors import CompositionError, DataError
from onion.online import Spool, SpoolWriter
from onion.online.sources import spool


@pytest.fixture
def path(tmp_path):
    return tmp_path / "samples.db"


@pytest.fixture
def writer(path):
    with SpoolWriter(path) as writer:
        yield writer


@pytest.fixture
def open_spool(path, opened):
    return lambda **settings: opened(Spool(path, **settings))


def data(samples):
    return [sample.data for sample in samples]


def sql(path, statement):
    """Execute a statement in the file; return its rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return database.execute(statement).fetchall()


def numbers(path):
    return [number for (number,) in sql(path, "SELECT id FROM samples ORDER BY id")]


def meta(path, column):
    return sql(path, f"SELECT {column} FROM meta")[0][0]


# -- reading -----------------------------------------------------------------------------------------------------------


def test_it_waits_for_the_first_sample_only(open_spool, writer, monkeypatch):
    source = open_spool()
    waits = []
    monkeypatch.setattr(spool, "sleep", lambda seconds: waits.append(seconds) or writer.write(["a"]))
    assert data(source.read(5, 60)) == ["a"]
    assert waits == [spool.POLL_SECONDS]


def test_a_position_behind_the_last_sample_is_an_error(open_spool, writer):
    writer.write([1, 2])
    source = open_spool()
    source.position = "3"
    with pytest.raises(DataError, match=r"position 3 is behind the last sample, 2, .* restore that file"):
        source.read(1, 0)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM samples WHERE id = 2", "have been removed"),
        ("UPDATE samples SET data = '{' WHERE id = 1", "sample 1: the stored text is not JSON"),
    ],
)
def test_a_gap_and_a_damaged_sample_are_errors(open_spool, path, writer, statement, message):
    writer.write([1, 2, 3])
    sql(path, statement)
    with pytest.raises(DataError, match=message):
        open_spool().read(9, 0)


def test_the_beginning_is_the_oldest_sample(open_spool, writer, caplog):
    writer.write([1, 2, 3])
    source = open_spool(retention=0)
    source.commit("2")
    assert source.waiting() == 1
    assert data(source.read(9, 0)) == [3]
    assert "the first 2 samples have been removed; reading starts after them" in caplog.text
    caplog.clear()
    source.commit("3")
    source.position = ""
    assert source.waiting() == 0
    assert source.read(1, 0) == []
    writer.write([4])
    assert data(source.read(9, 0)) == [4]


def test_a_file_that_is_removed_is_noticed(open_spool, path, monkeypatch):
    source = open_spool()
    source.read(1, 0)
    monkeypatch.setattr(spool, "sleep", lambda seconds: path.unlink(missing_ok=True))
    with pytest.raises(DataError, match="removed or replaced"):
        source.read(1, 60)


# -- another file in its place -----------------------------------------------------------------------------------------


def learned(path, count=500):
    """Put samples in, read all of them, and return the position, as a checkpoint has it."""
    source = Spool(path)
    with source.writer() as writer:
        writer.write(list(range(count)))
    source.read(1000, 0)
    source.close()
    return source.position


def assert_refused(path, position, match):
    """Assert that a run that resumes from a position reads nothing, removes nothing, and gets the reason."""
    source, before = Spool(path, retention=0), numbers(path)
    source.position = position
    for attempt in (lambda: source.read(9, 0), lambda: source.commit(position)):
        with pytest.raises(DataError, match=match) as error:
            attempt()
        assert "restore that file with those beside it (-wal, -shm), or start a new run" in str(error.value)
    source.close()
    assert numbers(path) == before


def test_another_file_of_the_same_name_is_refused(path):
    position = learned(path)
    path.unlink()
    with SpoolWriter(path) as writer:
        writer.write(list(range(1000)))
    assert_refused(path, position, r"its id is [0-9a-f]{16}, that of the file that was read is [0-9a-f]{16}")


@pytest.mark.parametrize(
    ("since", "match"), [(0, "is behind the last sample, 300"), (300, "sample 500 is another one")]
)
def test_an_older_copy_is_refused_even_if_it_was_written_to_since(path, since, match):
    learned(path, 300)
    copy = path.read_bytes()
    position = learned(path, 200)
    assert position.startswith("500@")
    path.write_bytes(copy)
    if since:
        with SpoolWriter(path) as writer:
            writer.write(list(range(since)))
    assert_refused(path, position, match)


def test_an_older_copy_is_refused_even_if_the_last_sample_was_removed(path):
    copy = learned(path, 300) and path.read_bytes()
    position = learned(path, 200)
    source = Spool(path, retention=0)
    source.commit(position)
    source.close()
    assert numbers(path) == []
    source.position = position
    assert source.read(9, 0) == []
    source.close()
    path.write_bytes(copy)
    learned(path, 200)
    source.position = position
    with pytest.raises(DataError, match="sample 500 is another one"):
        source.read(9, 0)
    source.close()


def test_a_copy_with_all_samples_that_were_read_is_accepted(path, open_spool):
    position = learned(path, 3)
    with SpoolWriter(path) as writer:
        writer.write(["more"])
    path.write_bytes(path.read_bytes())
    source = open_spool()
    source.position = position
    assert data(source.read(9, 0)) == ["more"]


def test_a_file_of_an_earlier_version_gets_an_id_when_it_is_read_and_old_positions_are_valid(path):
    learned(path, 3)
    sql(path, "DROP TABLE origin")
    source = Spool(path)
    aside = source.replay_reader()
    assert [sample.position for sample in aside.read(9, 0)] == ["1", "2", "3"]
    aside.close()
    source.position = "1"
    position = source.read(1, 0)[0].position
    source.close()
    assert position.startswith("2@")
    source.position = position
    assert data(source.read(9, 0)) == [2]
    source.close()
    path.unlink()
    learned(path, 9)
    assert_refused(path, position, "its id is")


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_the_capacity_is_stored_in_the_file(open_spool, path):
    open_spool(capacity=7).read(1, 0)
    assert meta(path, "capacity") == 7
    closed = open_spool(capacity=8)
    closed.read(1, 0)
    closed.close()
    open_spool(capacity=9).read(1, 0)
    assert meta(path, "capacity") == 9
    closed.read(1, 0)
    assert meta(path, "capacity") == 8


def test_progress_is_stored_periodically_and_when_there_are_no_more_samples(open_spool, path, writer, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(spool, "monotonic", lambda: now[0])
    source = open_spool()
    writer.write([1, 2, 3, 4])
    source.read(1, 0)
    assert meta(path, "read") == 1
    source.read(1, 0)
    assert meta(path, "read") == 1
    now[0] = 0.2
    source.read(1, 0)
    assert meta(path, "read") == 3
    source.read(1, 0)
    source.read(1, 0)
    assert meta(path, "read") == 4


def test_going_back_is_stored_too(open_spool, path, writer):
    writer.write([1, 2, 3])
    source = open_spool()
    source.read(3, 0)
    source.read(1, 0)
    source.position = "1"
    source.read(1, 0)
    source.read(1, 0)
    source.read(1, 0)
    assert meta(path, "read") == 3


def test_a_concurrent_writer_does_not_delay_a_read(open_spool, path, writer, monkeypatch):
    monkeypatch.setattr(spool, "BUSY_SECONDS", 0.0)
    source = open_spool()
    source.read(1, 0)
    writer.write([1, 2])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert data(source.read(1, 0)) == [1]
    source.commit("1")
    other.execute("ROLLBACK")
    other.close()
    assert meta(path, "read") == 0
    source.read(1, 0)
    source.read(1, 0)
    assert meta(path, "read") == 2


# -- removing ----------------------------------------------------------------------------------------------------------


def drain(source):
    while source.read(1, 0):
        pass


@pytest.fixture
def now(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(spool, "time", lambda: now[0])
    return now


def test_committed_samples_are_removed_after_their_retention(open_spool, path, writer, now):
    source = open_spool(retention=timedelta(seconds=10))
    writer.write([1, 2])
    now[0] = 1005.0
    writer.write([3])
    drain(source)
    source.commit("3")
    assert numbers(path) == [1, 2, 3]
    now[0] = 1010.0
    source.commit("1")
    assert numbers(path) == [2, 3]
    source.commit("3")
    assert numbers(path) == [3]


def test_a_clock_that_went_back_makes_no_gap(open_spool, path, writer, now):
    writer.write([1])
    now[0] = 10.0
    writer.write([2])
    now[0] = 500.0
    open_spool(retention=timedelta(seconds=10)).commit("2")
    assert numbers(path) == [1, 2]


def test_the_default_retention_is_a_day(open_spool, path, writer):
    writer.write([1])
    source = open_spool()
    source.commit("1")
    assert source.retention == timedelta(days=1)
    assert numbers(path) == [1]


def test_a_retention_in_bytes_keeps_the_file_small(open_spool, path, writer, monkeypatch):
    monkeypatch.setattr(spool, "MAX_REMOVED", 20)
    source = open_spool(retention=200_000)
    for _ in range(10):
        writer.write(["x" * 1000] * 100)
        drain(source)
        source.commit(source.position)
        for _ in range(5):
            source.read(1, 0)
    assert 100 <= len(numbers(path)) < 200
    writer.close()
    source.close()
    assert path.stat().st_size < 300_000


def test_the_file_shrinks(open_spool, path, writer):
    source = open_spool(retention=0)
    writer.write(["x" * 1000] * 900)
    writer.close()
    source.read(900, 0)
    source.commit(source.position)
    source.close()
    assert path.stat().st_size < 50_000


def test_removal_continues_in_portions_with_each_read(open_spool, path, writer, monkeypatch):
    monkeypatch.setattr(spool, "MAX_REMOVED", 3)
    source = open_spool(retention=0)
    writer.write(list(range(10)))
    source.read(10, 0)
    source.commit("8")
    left = [len(numbers(path))]
    for _ in range(4):
        source.read(1, 0)
        left.append(len(numbers(path)))
    assert left == [7, 4, 2, 2, 2]


@pytest.mark.parametrize("capacity", [0, -1, 1.5, "many", True])
def test_a_wrong_capacity_is_refused(path, capacity):
    with pytest.raises(CompositionError, match="capacity must be an integer >= 1"):
        Spool(path, capacity)
