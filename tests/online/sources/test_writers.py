"""SpoolWriter and RedisWriter: all or nothing, cursors, and bounds; full disks, and servers that go away."""

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from onion.errors import CompositionError, DataError
from onion.online import RedisStream, RedisWriter, Spool, SpoolWriter
from onion.online.sources import redis_writer
from onion.online.sources import source as module
from onion.online.sources.redis_server import AwayError, RedisServer
from onion.online.sources.source import Full
from onion.online.sources.spool_file import NoSpaceError, SpoolFile


class SpoolPlace:
    """A spool that writers of a test write to."""

    def __init__(self, folder):
        self.path = folder / "samples.db"

    def writer(self, producer="default", **settings):
        return SpoolWriter(self.path, producer, **settings)

    def source(self, capacity=100_000):
        return Spool(self.path, capacity=capacity)


class RedisPlace:
    """A Redis Stream, too."""

    def __init__(self, url):
        self.url, self.maxlen = url, 100_000

    def writer(self, producer="default", **settings):
        return RedisWriter(self.url, "s", producer, maxlen=self.maxlen, **settings)

    def source(self, capacity=100_000):
        self.maxlen = capacity
        return RedisStream(self.url, "s")


@pytest.fixture(params=["spool", pytest.param("redis", marks=pytest.mark.redis)])
def place(request, tmp_path):
    return SpoolPlace(tmp_path) if request.param == "spool" else RedisPlace(request.getfixturevalue("url"))


@pytest.fixture
def writer(place):
    with place.writer() as writer:
        yield writer


@pytest.fixture
def bounded(place):
    """A source that has been read, and has room for two samples that wait."""
    source = place.source(capacity=2)
    source.read(1, 0)
    yield source
    source.close()


def there(place):
    source = place.source()
    samples = [sample.data for sample in source.read(1000, 0)]
    source.close()
    return samples


def test_samples_come_in_order(place, writer):
    assert writer.write([1, {"a": "旅"}]) == 2
    assert writer.write([3]) == 1
    assert writer.write([]) == 0
    assert there(place) == [1, {"a": "旅"}, 3]


def test_nothing_is_taken_where_one_is_no_json(place, writer):
    with pytest.raises(DataError, match="sample 2"):
        writer.write([1, {2}])
    assert there(place) == []


def test_the_cursor_is_written_with_the_samples_and_a_repeated_one_takes_nothing(place, writer):
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
    assert there(place) == [1, 2, 3]


def test_where_there_is_no_room_nothing_is_taken(place, bounded):
    with place.writer() as writer:
        writer.write([1], cursor="a")
        with pytest.raises(Full) as caught:
            writer.write([2, 3], cursor="b")
        assert (caught.value.seconds, writer.cursor) == (1.0, "a")
        assert writer.write([2], cursor="b") == 1
        assert writer.write([2], cursor="b") == 0  # which needs no room


def test_what_was_read_makes_room_without_a_commit(place, bounded):
    with place.writer() as writer:
        for lot in range(20):
            writer.write([lot, lot])
            assert len(bounded.read(5, 0)) == 2
            assert bounded.read(5, 0) == []


def test_more_than_could_ever_have_room_is_an_error(place, bounded):
    with place.writer() as writer, pytest.raises(DataError, match=r"3 samples in one write are more than .*, 2; write"):
        writer.write([1, 2, 3])


def test_it_waits_for_room(place, bounded, monkeypatch):
    with place.writer(block=math.inf) as writer:
        writer.write([1, 2])
        monkeypatch.setattr(module, "sleep", lambda seconds: bounded.read(1, 0))
        assert writer.write([3]) == 1


def test_it_waits_as_long_as_it_was_told(place, bounded, monkeypatch):
    waits = []
    monkeypatch.setattr(module, "sleep", waits.append)
    monkeypatch.setattr(module, "monotonic", lambda: sum(waits))
    with place.writer(block=0.12) as writer:
        writer.write([1, 2])
        with pytest.raises(Full):
            writer.write([3])
    assert sum(waits) == pytest.approx(0.12)
    assert set(waits[:-1]) == {writer.POLL_SECONDS}


def test_many_writers_at_once(place):
    start = threading.Barrier(4)

    def write(name):
        with place.writer(name) as writer:
            start.wait()
            for lot in range(20):
                writer.write([[name, lot, 0], [name, lot, 1]], cursor=str(lot))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    samples = there(place)
    for name in "abcd":
        assert [each[1:] for each in samples if each[0] == name] == [[lot, i] for lot in range(20) for i in (0, 1)]
    assert all(samples[at][:2] == samples[at + 1][:2] for at in range(0, 160, 2))  # a write stays together


def test_their_names():
    assert repr(SpoolWriter("/a.db", "clicks")) == "SpoolWriter('/a.db', 'clicks')"
    assert repr(RedisWriter("redis://:secret@host", "s", "clicks")) == "RedisWriter('s', 'clicks')"


# -- of a spool --------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_full(tmp_path, monkeypatch, caplog):
    def refuse(self, sql, *rows):
        raise NoSpaceError("the disk is full")

    monkeypatch.setattr(SpoolFile, "execute", refuse)
    with SpoolWriter(tmp_path / "samples.db") as writer, pytest.raises(Full) as caught:
        writer.write([1])
    assert caught.value.seconds == 30
    assert "no samples are taken: the disk is full" in caplog.text


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


def test_without_a_reader_all_count_and_with_readers_the_slowest(url):
    with RedisWriter(url, "s", maxlen=3) as writer:
        writer.write([1, 2])
        with pytest.raises(Full):
            writer.write([3, 4])
        writer.write([3])
        fast, slow = RedisStream(url, "s"), RedisStream(url, "s", "slow")
        assert (len(slow.read(1, 0)), len(fast.read(3, 0))) == (1, 3)
        with pytest.raises(Full):
            writer.write([4, 5])
        writer.write([4])
        fast.close()
        slow.close()


def test_a_server_without_memory_is_full(ask, redis, caplog):
    redis.write([1], cursor="a")
    ask("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(Full) as caught:
            redis.write([2], cursor="b")
    finally:
        ask("CONFIG", "SET", "maxmemory", "0")
    assert caught.value.seconds == 30
    assert "takes no samples" in caplog.text
    assert (redis.cursor, entries(ask)) == ("a", [1])


def test_a_key_of_another_kind_is_an_error(ask, redis):
    ask("SET", "s", "1")
    with pytest.raises(DataError, match=r"WRONGTYPE.*; check the key and the server"):
        redis.write([1])


def test_a_server_that_comes_back_in_time_is_waited_for(own_redis, monkeypatch):
    with RedisWriter(own_redis.url, "s") as writer:
        writer.write([1], cursor="a")
        own_redis.kill()
        monkeypatch.setattr(redis_writer, "sleep", lambda seconds: own_redis.process or own_redis.start())
        assert writer.write([2], cursor="b") == 1
        assert writer.cursor == "b"
    server = RedisServer(own_redis.url)
    assert entries(server.call) == [1, 2]
    server.drop()


def lose_an_answer(writer):
    """Let the server carry a command out, and the connection be lost then."""
    call, times = writer._server.call, [1]

    def lossy(*command):
        answer = call(*command)
        if times:
            times.pop()
            writer._server.drop()
            raise AwayError("lost", sent=True)
        return answer

    writer._server.call = lossy


def test_a_write_is_sent_again_only_if_it_has_a_cursor(ask, redis):
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
def test_a_wrong_bound_is_refused(maxlen):
    with pytest.raises(CompositionError, match="maxlen must be an integer >= 1"):
        RedisWriter("redis://host", "s", maxlen=maxlen)
