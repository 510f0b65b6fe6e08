"""SpoolWriter: all or nothing, marks, and bounds."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from onion.errors import DataError
from onion.online.source import Full
from onion.online.sources import Spool, SpoolWriter, spool_writer
from onion.online.sources.spool_file import NoSpaceError, SpoolFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "samples.db"


@pytest.fixture
def writer(path):
    with SpoolWriter(path) as writer:
        yield writer


def there(path):
    spool = Spool(path)
    samples = [sample.data for sample in spool.read(1000, 0)]
    spool.close()
    return samples


def test_samples_come_in_order(path, writer):
    assert writer.write([1, {"a": "b"}]) == 2
    assert writer.write([3]) == 1
    assert there(path) == [1, {"a": "b"}, 3]


def test_nothing_is_taken_where_one_is_no_json(path, writer):
    with pytest.raises(DataError, match="sample 2"):
        writer.write([1, {2}])
    assert there(path) == []


def test_no_samples_are_no_write(path, writer):
    assert writer.write([]) == 0
    assert not path.exists()


def test_the_mark_is_there_with_the_samples(path, writer):
    assert writer.mark is None
    writer.write([1], mark="a")
    assert writer.mark == "a"
    assert SpoolWriter(path, "default").mark == "a"


def test_a_mark_may_move_without_samples(writer):
    assert writer.write([], mark="b") == 0
    assert writer.mark == "b"


def test_a_repeated_mark_takes_nothing(path, writer):
    assert writer.write([1], mark="a") == 1
    assert writer.write([1], mark="a") == 0
    assert writer.write([2], mark="b") == 1
    assert there(path) == [1, 2]


def test_a_write_without_a_mark_leaves_it(path, writer):
    writer.write([1], mark="a")
    writer.write([2])
    assert writer.mark == "a"
    writer.write([3])
    assert there(path) == [1, 2, 3]


def test_each_producer_has_its_mark(path, writer):
    with SpoolWriter(path, "other") as other:
        writer.write([1], mark="a")
        assert other.mark is None
        assert other.write([2], mark="a") == 1
    assert there(path) == [1, 2]


def test_a_full_spool_takes_all_or_nothing(path, writer):
    spool = Spool(path, capacity=3)
    spool.read(1, 0)
    writer.write([1, 2])
    with pytest.raises(Full) as caught:
        writer.write([3, 4], mark="a")
    assert caught.value.seconds == 1.0
    assert writer.mark is None
    writer.write([3])
    spool.close()
    assert there(path) == [1, 2, 3]


def test_a_repeated_mark_needs_no_room(path, writer):
    spool = Spool(path, capacity=1)
    spool.read(1, 0)
    writer.write([1], mark="a")
    assert writer.write([1], mark="a") == 0
    spool.close()


def test_what_was_read_makes_room_without_a_commit(path, writer):
    spool = Spool(path, capacity=2)
    for lot in range(20):
        writer.write([lot, lot])
        assert len(spool.read(5, 0)) == 2
        assert spool.read(5, 0) == []
    spool.close()


def test_more_than_could_ever_have_room_is_an_error(path, writer):
    spool = Spool(path, capacity=2)
    spool.read(1, 0)
    with pytest.raises(DataError, match="3 samples in one write are more than the spool's capacity, 2; write fewer"):
        writer.write([1, 2, 3])
    spool.close()


def test_it_waits_for_room(path):
    spool = Spool(path, capacity=1)
    spool.read(1, 0)
    with SpoolWriter(path, block=30) as writer, ThreadPoolExecutor(1) as pool:
        writer.write([1])
        later = pool.submit(writer.write, [2])
        seen = []
        while len(seen) < 2:
            seen += [sample.data for sample in spool.read(5, 1)]
        assert seen == [1, 2]
        assert later.result(30) == 1
    spool.close()


def test_it_waits_as_long_as_it_was_told(path, monkeypatch):
    waits = []
    monkeypatch.setattr(spool_writer, "sleep", waits.append)
    monkeypatch.setattr(spool_writer, "monotonic", lambda: sum(waits))
    spool = Spool(path, capacity=1)
    spool.read(1, 0)
    with SpoolWriter(path, block=0.05) as writer:
        writer.write([1])
        with pytest.raises(Full):
            writer.write([2])
    spool.close()
    assert waits == pytest.approx([0.02, 0.02, 0.01])


def test_a_full_disk_is_full(writer, monkeypatch, caplog):
    def refuse(self, sql, *rows):
        raise NoSpaceError("the disk is full")

    monkeypatch.setattr(SpoolFile, "do", refuse)
    with pytest.raises(Full) as caught:
        writer.write([1])
    assert caught.value.seconds == 30
    assert "no samples are taken: the disk is full" in caplog.text


def test_many_writers_at_once(path):
    start = threading.Barrier(4)

    def write(name):
        with SpoolWriter(path, name) as writer:
            start.wait()
            for lot in range(20):
                writer.write([[name, lot, 0], [name, lot, 1]], mark=str(lot))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    samples = there(path)
    for name in "abcd":
        assert [sample[1:] for sample in samples if sample[0] == name] == [
            [lot, i] for lot in range(20) for i in (0, 1)
        ]
    assert all(samples[place][:2] == samples[place + 1][:2] for place in range(0, 160, 2))  # a lot stays together


def test_it_is_told_by_its_file_and_producer(path):
    assert repr(SpoolWriter(path, "clicks")) == f"SpoolWriter({str(path)!r}, 'clicks')"
