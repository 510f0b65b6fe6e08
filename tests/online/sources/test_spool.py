"""Spool: samples in order, places, bounds, and what is removed when."""

import sqlite3
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
def open_spool(path):
    opened = []

    def open_it(**settings):
        opened.append(Spool(path, **settings))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


def data(samples):
    return [sample.data for sample in samples]


def place(sample):
    """The place that a position tells, without what it tells of the file."""
    number, _, rest = sample.position.partition("@")
    assert rest
    return number


def numbers(path):
    database = sqlite3.connect(path)
    rows = database.execute("SELECT id FROM samples ORDER BY id").fetchall()
    database.close()
    return [number for (number,) in rows]


def meta(path, column):
    database = sqlite3.connect(path)
    ((value,),) = database.execute(f"SELECT {column} FROM meta").fetchall()
    database.close()
    return value


# -- reading -----------------------------------------------------------------------------------------------------------


def test_it_waits_for_the_first_and_not_for_the_others(open_spool, writer, monkeypatch):
    source = open_spool()
    waits = []
    monkeypatch.setattr(spool, "sleep", lambda seconds: waits.append(seconds) or writer.write(["a"]))
    assert data(source.read(5, 60)) == ["a"]
    assert waits == [spool.POLL_SECONDS]


def test_a_place_behind_the_last_sample_is_told(open_spool, writer):
    writer.write([1, 2])
    source = open_spool()
    source.position = "3"
    with pytest.raises(DataError, match=r"position 3 is behind the last sample, 2, .* put that one back"):
        source.read(1, 0)


def test_a_hole_is_told(open_spool, path, writer):
    writer.write([1, 2, 3])
    database = sqlite3.connect(path)
    database.execute("DELETE FROM samples WHERE id = 2")
    database.commit()
    database.close()
    with pytest.raises(DataError, match="have been removed"):
        open_spool().read(9, 0)


def test_the_beginning_is_the_oldest_there_is(open_spool, writer, caplog):
    writer.write([1, 2, 3])
    source = open_spool(retention=0)
    source.commit("2")
    assert source.waiting() == 1
    assert data(source.read(9, 0)) == [3]
    assert "the first 2 samples have been removed; reading begins behind them" in caplog.text
    caplog.clear()
    source.commit("3")
    source.position = ""
    assert source.waiting() == 0
    assert source.read(1, 0) == []
    writer.write([4])
    assert data(source.read(9, 0)) == [4]


def test_a_damaged_sample_is_told(open_spool, path, writer):
    writer.write([1])
    database = sqlite3.connect(path)
    database.execute("UPDATE samples SET data = '{'")
    database.commit()
    database.close()
    with pytest.raises(DataError, match="sample 1: what is stored there is not JSON"):
        open_spool().read(1, 0)


def test_a_file_that_is_taken_away_is_noticed(open_spool, path, monkeypatch):
    source = open_spool()
    source.read(1, 0)
    monkeypatch.setattr(spool, "sleep", lambda seconds: path.unlink(missing_ok=True))
    with pytest.raises(DataError, match="removed or replaced"):
        source.read(1, 60)


# -- another file in its place -----------------------------------------------------------------------------------------


def learned(path, count=500):
    """Put samples in, read all there are, and return the position, as a checkpoint has it."""
    source = Spool(path)
    with source.writer() as writer:
        writer.write(list(range(count)))
    source.read(1000, 0)
    source.close()
    return source.position


def refuses(path, position, match):
    """Insist that a run that goes on from a position reads nothing, removes nothing, and is told why."""
    source, before = Spool(path, retention=0), numbers(path)
    source.position = position
    for attempt in (lambda: source.read(9, 0), lambda: source.commit(position)):
        with pytest.raises(DataError, match=match) as error:
            attempt()
        assert "put that one back with those beside it (-wal, -shm), or start a new run" in str(error.value)
    source.close()
    assert numbers(path) == before


def test_another_file_of_the_same_name_is_refused(path):
    position = learned(path)
    path.unlink()
    with SpoolWriter(path) as writer:
        writer.write(list(range(1000)))
    refuses(path, position, r"its id is [0-9a-f]{16}, that of the one that was read is [0-9a-f]{16}")


@pytest.mark.parametrize(
    ("since", "match"), [(0, "is behind the last sample, 300"), (300, "sample 500 is another one")]
)
def test_an_older_copy_is_refused_also_if_it_was_written_to_since(path, since, match):
    learned(path, 300)
    copy = path.read_bytes()
    position = learned(path, 200)
    assert position.startswith("500@")
    path.write_bytes(copy)
    if since:
        with SpoolWriter(path) as writer:
            writer.write(list(range(since)))
    refuses(path, position, match)


def test_an_older_copy_is_refused_where_the_last_sample_was_removed_too(path):
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


def test_a_copy_that_has_all_that_was_read_goes_on(path):
    position = learned(path, 3)
    with SpoolWriter(path) as writer:
        writer.write(["more"])
    path.write_bytes(path.read_bytes())
    source = Spool(path)
    source.position = position
    assert data(source.read(9, 0)) == ["more"]
    source.close()


def test_a_file_of_an_earlier_version_gets_an_id_when_it_is_read_and_old_positions_go_on(path):
    learned(path, 3)
    database = sqlite3.connect(path)
    database.execute("DROP TABLE origin")
    database.commit()
    database.close()
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
    refuses(path, position, "its id is")


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_the_capacity_is_in_the_file(open_spool, path):
    open_spool(capacity=7).read(1, 0)
    assert meta(path, "capacity") == 7
    closed = open_spool(capacity=8)
    closed.read(1, 0)
    closed.close()
    open_spool(capacity=9).read(1, 0)
    assert meta(path, "capacity") == 9
    closed.read(1, 0)
    assert meta(path, "capacity") == 8


def test_how_far_it_has_read_is_noted_at_times_and_when_there_is_no_more(open_spool, path, writer, monkeypatch):
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


def test_going_back_is_noted_too(open_spool, path, writer):
    writer.write([1, 2, 3])
    source = open_spool()
    source.read(3, 0)
    source.read(1, 0)
    source.position = "1"
    source.read(1, 0)
    source.read(1, 0)
    source.read(1, 0)
    assert meta(path, "read") == 3


def test_a_writer_at_work_does_not_hold_up_a_read(open_spool, path, writer, monkeypatch):
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


def test_what_is_committed_goes_once_it_is_old(open_spool, path, writer, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(spool, "time", lambda: now[0])
    monkeypatch.setattr("onion.online.sources.spool_writer.time", lambda: now[0])
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


def test_a_clock_that_went_back_makes_no_hole(open_spool, path, writer, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(spool, "time", lambda: now[0])
    monkeypatch.setattr("onion.online.sources.spool_writer.time", lambda: now[0])
    writer.write([1])
    now[0] = 10.0
    writer.write([2])
    now[0] = 500.0
    source = open_spool(retention=timedelta(seconds=10))
    source.commit("2")
    assert numbers(path) == [1, 2]


def test_by_default_a_day_is_kept(open_spool, path, writer):
    writer.write([1])
    source = open_spool()
    source.commit("1")
    assert source.retention == timedelta(days=1)
    assert numbers(path) == [1]


def test_by_size_the_file_stays_small(open_spool, path, writer, monkeypatch):
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


def test_the_file_gets_smaller_again(open_spool, path, writer):
    source = open_spool(retention=0)
    writer.write(["x" * 1000] * 900)
    writer.close()
    source.read(900, 0)
    source.commit(source.position)
    source.close()
    assert path.stat().st_size < 50_000


def test_removing_goes_on_in_portions_with_each_read(open_spool, path, writer, monkeypatch):
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
