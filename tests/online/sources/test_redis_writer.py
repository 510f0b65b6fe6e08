"""RedisWriter: all or nothing, marks, bounds, and a server that goes away."""

import json
import math
import threading

import pytest

from onion.errors import CompositionError, DataError
from onion.online.source import Full
from onion.online.sources import RedisStream, RedisWriter, redis_writer
from onion.online.sources.redis_server import AwayError, RedisServer
from tests.patience import PATIENCE


@pytest.fixture
def open_writer():
    opened = []

    def open_it(*words, **settings):
        opened.append(RedisWriter(*words, **settings))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


@pytest.fixture
def writer(url, open_writer):
    return open_writer(url, "s")


@pytest.fixture
def stream(url):
    stream = RedisStream(url, "s")
    yield stream
    stream.close()


def there(ask):
    return [json.loads(fields[3]) for _, fields in ask("XRANGE", "s", "-", "+")]


def test_samples_come_in_order_with_their_numbers(ask, writer):
    assert writer.write(["a", {"b": "旅"}]) == 2
    assert writer.write([3]) == 1
    assert there(ask) == ["a", {"b": "旅"}, 3]
    assert [fields[:2] for _, fields in ask("XRANGE", "s", "-", "+")] == [[b"n", b"1"], [b"n", b"2"], [b"n", b"3"]]


def test_nothing_is_taken_where_one_is_no_json(ask, writer):
    with pytest.raises(DataError, match="sample 2"):
        writer.write([1, {2}])
    assert there(ask) == []


def test_marks(ask, url, writer, open_writer):
    other = open_writer(url, "s", "other")
    assert writer.mark is None
    assert writer.write([1], mark="a") == 1
    assert writer.write([1], mark="a") == 0
    assert other.write([2], mark="a") == 1
    writer.write([3])
    assert writer.mark == "a"
    assert writer.write([], mark="b") == 0
    assert writer.mark == "b"
    assert writer.write([], mark="") == 0
    assert writer.mark == ""
    assert writer.write([4], mark="") == 0
    assert writer.write([]) == 0
    assert there(ask) == [1, 2, 3]


def test_without_a_reader_all_count(ask, url, open_writer):
    writer = open_writer(url, "s", maxlen=3)
    writer.write([1, 2])
    with pytest.raises(Full) as caught:
        writer.write([3, 4], mark="a")
    assert caught.value.seconds == 1.0
    assert writer.mark is None
    writer.write([3])
    assert there(ask) == [1, 2, 3]


def test_what_was_read_makes_room_without_a_commit(url, stream, open_writer):
    writer = open_writer(url, "s", maxlen=3)
    for lot in range(10):
        writer.write([lot, lot])
        assert len(stream.read(1, 0)) == 1
        with pytest.raises(Full):
            writer.write([lot, lot, lot])
        assert len(stream.read(5, 0)) == 1


def test_the_slowest_group_counts(url, stream, open_writer):
    writer = open_writer(url, "s", maxlen=3)
    slow = RedisStream(url, "s", "slow")
    writer.write([1, 2, 3])
    assert len(slow.read(1, 0)) == 1
    assert len(stream.read(3, 0)) == 3
    with pytest.raises(Full):
        writer.write([4, 5])
    writer.write([4])
    slow.close()


def test_more_than_could_ever_have_room_is_an_error(url, open_writer):
    with pytest.raises(DataError, match="3 samples in one write are more than maxlen, 2; write fewer"):
        open_writer(url, "s", maxlen=2).write([1, 2, 3])


def test_it_waits_for_room(url, stream, open_writer, monkeypatch):
    writer = open_writer(url, "s", maxlen=1, block=math.inf)
    stream.read(1, 0)
    writer.write([1])
    monkeypatch.setattr(redis_writer, "sleep", lambda seconds: stream.read(1, 0))
    assert writer.write([2]) == 1


def test_it_waits_as_long_as_it_was_told(url, open_writer, monkeypatch):
    waits = []
    monkeypatch.setattr(redis_writer, "sleep", waits.append)
    monkeypatch.setattr(redis_writer, "monotonic", lambda: sum(waits))
    writer = open_writer(url, "s", maxlen=1, block=0.12)
    writer.write([1])
    with pytest.raises(Full):
        writer.write([2])
    assert waits == pytest.approx([0.05, 0.05, 0.02])


def test_a_server_without_memory_is_full(ask, writer, caplog):
    writer.write([1], mark="a")
    ask("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(Full) as caught:
            writer.write([2], mark="b")
    finally:
        ask("CONFIG", "SET", "maxmemory", "0")
    assert caught.value.seconds == 30
    assert "takes no samples" in caplog.text
    assert writer.mark == "a"
    assert there(ask) == [1]


def test_a_key_of_another_kind_is_told(ask, writer):
    ask("SET", "s", "1")
    with pytest.raises(DataError, match=r"WRONGTYPE.*; check the key and the server"):
        writer.write([1])


def test_a_server_that_comes_back_in_time_is_waited_for(own_redis, open_writer, monkeypatch):
    writer = open_writer(own_redis.url, "s")
    writer.write([1], mark="a")
    own_redis.kill()
    monkeypatch.setattr(redis_writer, "sleep", lambda seconds: own_redis.process or own_redis.start())
    assert writer.write([2], mark="b") == 1
    assert writer.mark == "b"
    server = RedisServer(own_redis.url)
    assert there(server.call) == [1, 2]
    server.drop()


def lose_the_answer(writer, times):
    """Let the server carry commands out, and the connection be lost then."""
    call = writer._server.call

    def lossy(*command):
        answer = call(*command)
        if times:
            times.pop()
            writer._server.drop()
            raise AwayError("lost", sent=True)
        return answer

    writer._server.call = lossy


def test_a_write_with_a_mark_is_sent_again_and_taken_once(ask, writer):
    lose_the_answer(writer, [1])
    assert writer.write([1], mark="a") == 0
    assert there(ask) == [1]


def test_a_write_without_a_mark_is_not_sent_again(ask, writer):
    lose_the_answer(writer, [1])
    with pytest.raises(DataError, match="nobody knows whether it got through; writes with a mark can be repeated"):
        writer.write([1])
    assert there(ask) == [1]


def test_a_server_that_stays_away_is_told(open_writer):
    with pytest.raises(DataError, match=r"is away .*; start it, or check the URL"):
        open_writer("redis://127.0.0.1:1", "s", patience=0).write([1])


def test_many_writers_at_once(ask, url):
    def write(name):
        with RedisWriter(url, "s", name) as writer:
            for lot in range(20):
                writer.write([[name, lot, 0], [name, lot, 1]], mark=str(lot))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    samples = there(ask)
    for name in "abcd":
        assert [each[1:] for each in samples if each[0] == name] == [[lot, i] for lot in range(20) for i in (0, 1)]
    assert all(samples[place][:2] == samples[place + 1][:2] for place in range(0, 160, 2))


@pytest.mark.parametrize("maxlen", [0, 1.5, None])
def test_a_wrong_bound_is_refused(maxlen):
    with pytest.raises(CompositionError, match="is no number of samples from 1"):
        RedisWriter("redis://host", "s", maxlen=maxlen)


def test_it_is_told_by_its_stream_and_not_by_its_url():
    assert repr(RedisWriter("redis://:secret@host", "s", "clicks")) == "RedisWriter('s', 'clicks')"
