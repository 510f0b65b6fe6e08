"""SpoolWriter and RedisWriter: all or nothing, cursors, bounds, full disks, and servers that are away."""

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from onion.errors import CompositionError, DataError
from onion.online import RedisStream, RedisWriter, SpoolWriter
from onion.online.sources import redis_stream
from onion.online.sources import source as module
from onion.online.sources.redis_server import AwayError
from onion.online.sources.source import Full
from onion.online.sources.spool_file import NoSpaceError, SpoolFile
from tests.online.sources.kinds import RedisKind, SpoolKind, kind_of


@pytest.fixture(params=[SpoolKind, RedisKind])
def place(request, tmp_path):
    return kind_of(request, request.param, tmp_path / "s")


@pytest.fixture
def writer(place):
    with place.writer() as writer:
        yield writer


@pytest.fixture
def bounded(place, opened):
    """A source that has been read, and has room for two samples that wait."""
    source = opened(place.make(capacity=2))
    source.read(1, 0)
    return source


@pytest.fixture
def there(place, opened):
    """A function that returns all samples that were put in."""
    return lambda: [sample.data for sample in opened(place.make()).read(1000, 0)]


def test_samples_come_in_order(writer, there):
    assert writer.write([1, {"a": "旅"}]) == 2
    assert writer.write([3]) == 1
    assert writer.write([]) == 0
    assert there() == [1, {"a": "旅"}, 3]


def test_nothing_is_taken_if_one_sample_is_not_json(writer, there):
    with pytest.raises(DataError, match="sample 2"):
        writer.write([1, {2}])
    assert there() == []


def test_the_cursor_is_written_with_the_samples_and_a_repeated_one_takes_nothing(place, writer, there):
    assert writer.cursor is None
    assert writer.write([1], cursor="a") == 1
    assert writer.write([1], cursor="a") == 0
    with place.writer("other") as other:
        assert other.cursor is None
        assert other.write([2], cursor="a") == 1
    assert writer.write([3]) == 1
    assert writer.cursor == "a"
    assert writer.write([], cursor="b") == 0
    with place.writer() as again:
        assert again.cursor == "b"
    assert writer.write([], cursor="") == 0
    assert writer.write([4], cursor="") == 0
    assert there() == [1, 2, 3]


def test_without_room_nothing_is_taken(place, bounded):
    with place.writer() as writer:
        writer.write([1], cursor="a")
        with pytest.raises(Full) as caught:
            writer.write([2, 3], cursor="b")
        assert (caught.value.seconds, writer.cursor) == (1.0, "a")
        assert writer.write([2], cursor="b") == 1
        assert writer.write([2], cursor="b") == 0  # which needs no room


def test_samples_that_were_read_make_room_without_a_commit(place, bounded):
    with place.writer() as writer:
        for lot in range(20):
            writer.write([lot, lot])
            assert len(bounded.read(5, 0)) == 2
            assert bounded.read(5, 0) == []


def test_more_than_the_capacity_is_an_error(place, bounded):
    with place.writer() as writer, pytest.raises(DataError, match=r"3 samples in one write exceed .*, 2; write"):
        writer.write([1, 2, 3])


def test_it_waits_for_room(place, bounded, monkeypatch):
    with place.writer(block=math.inf) as writer:
        writer.write([1, 2])
        monkeypatch.setattr(module, "sleep", lambda seconds: bounded.read(1, 0))
        assert writer.write([3]) == 1


def test_it_waits_no_longer_than_configured(place, bounded, monkeypatch):
    waits = []
    monkeypatch.setattr(module, "sleep", waits.append)
    monkeypatch.setattr(module, "monotonic", lambda: sum(waits))
    with place.writer(block=0.12) as writer:
        writer.write([1, 2])
        with pytest.raises(Full):
            writer.write([3])
    assert sum(waits) == pytest.approx(0.12)
    assert set(waits[:-1]) == {writer.POLL_SECONDS}


def test_several_writers_at_once(place, there):
    start = threading.Barrier(4)

    def write(name):
        with place.writer(name) as writer:
            start.wait()
            for lot in range(20):
                writer.write([[name, lot, 0], [name, lot, 1]], cursor=str(lot))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    samples = there()
    for name in "abcd":
        assert [each[1:] for each in samples if each[0] == name] == [[lot, i] for lot in range(20) for i in (0, 1)]
    assert all(samples[at][:2] == samples[at + 1][:2] for at in range(0, 160, 2))  # a write stays together


# -- of a spool --------------------------------------------------------------------------------------------------------


def test_a_full_disk_raises_full(tmp_path, monkeypatch, caplog):
    def refuse(self, sql, *rows):
        raise NoSpaceError("the disk is full")

    monkeypatch.setattr(SpoolFile, "execute", refuse)
    with SpoolWriter(tmp_path / "samples.db") as writer, pytest.raises(Full) as caught:
        writer.write([1])
    assert caught.value.seconds == 30
    assert "no samples are accepted: the disk is full" in caplog.text


# -- of Redis ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def redis(url):
    with RedisWriter(url, "s") as writer:
        yield writer


def entries(ask):
    return [json.loads(fields[3]) for _, fields in ask("XRANGE", "s", "-", "+")]


def test_entries_have_their_numbers(ask, redis):
    redis.write([1, 2])
    redis.write([3])
    assert [fields[:2] for _, fields in ask("XRANGE", "s", "-", "+")] == [[b"n", b"1"], [b"n", b"2"], [b"n", b"3"]]


def test_without_a_reader_all_samples_count_and_with_readers_the_slowest(url, opened):
    with RedisWriter(url, "s", maxlen=3) as writer:
        writer.write([1, 2])
        with pytest.raises(Full):
            writer.write([3, 4])
        writer.write([3])
        fast, slow = opened(RedisStream(url, "s")), opened(RedisStream(url, "s", "slow"))
        assert (len(slow.read(1, 0)), len(fast.read(3, 0))) == (1, 3)
        with pytest.raises(Full):
            writer.write([4, 5])
        writer.write([4])


def test_a_server_without_memory_raises_full(ask, redis, caplog):
    redis.write([1], cursor="a")
    ask("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(Full) as caught:
            redis.write([2], cursor="b")
    finally:
        ask("CONFIG", "SET", "maxmemory", "0")
    assert caught.value.seconds == 30
    assert "accepts no samples" in caplog.text
    assert (redis.cursor, entries(ask)) == ("a", [1])


def test_a_key_of_another_kind_is_an_error(ask, redis):
    ask("SET", "s", "1")
    with pytest.raises(DataError, match=r"WRONGTYPE.*; check the key and the server"):
        redis.write([1])


def test_a_server_that_returns_in_time_is_waited_for(own_redis, opened, monkeypatch):
    with RedisWriter(own_redis.url, "s") as writer:
        writer.write([1], cursor="a")
        own_redis.kill()
        monkeypatch.setattr(redis_stream, "sleep", lambda seconds: own_redis.process or own_redis.start())
        assert writer.write([2], cursor="b") == 1
        assert writer.cursor == "b"
    with RedisWriter(own_redis.url, "s") as writer:
        assert entries(writer._server.call) == [1, 2]


def lose_an_answer(writer):
    """Let the server carry out a command, and the connection be lost then."""
    call, times = writer._server.call, [1]

    def lossy(*command):
        answer = call(*command)
        if times:
            times.pop()
            writer._server.drop()
            raise AwayError("lost", sent=True)
        return answer

    writer._server.call = lossy


def test_an_interrupted_write_is_repeated_only_if_it_has_a_cursor(ask, redis):
    lose_an_answer(redis)
    assert redis.write([1], cursor="a") == 0
    lose_an_answer(redis)
    with pytest.raises(DataError, match="unknown whether that succeeded; writes with a cursor can be repeated"):
        redis.write([2])
    assert entries(ask) == [1, 2]


def test_a_server_that_stays_away_is_an_error():
    with (
        RedisWriter("redis://127.0.0.1:1", "s", timeout=0) as writer,
        pytest.raises(DataError, match=r"is away .*; start it, or check the URL"),
    ):
        writer.write([1])


@pytest.mark.parametrize("maxlen", [0, 1.5, None])
def test_a_wrong_capacity_is_refused(maxlen):
    with pytest.raises(CompositionError, match="maxlen must be an integer >= 1"):
        RedisWriter("redis://host", "s", maxlen=maxlen)
