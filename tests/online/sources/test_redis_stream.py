"""RedisStream: samples from a Redis Stream, and positions in it."""

import threading
from datetime import timedelta

import pytest

from onion.errors import DataError
from onion.online import RedisStream, RedisWriter
from onion.online.sources import redis_server, redis_stream
from onion.online.sources.redis_server import AwayError
from onion.online.sources.redis_stream import Place, order
from tests.online.sources.redis_process import RedisProcess
from tests.patience import PATIENCE


@pytest.fixture
def open_stream(url, opened):
    return lambda *words, at=url, **settings: opened(RedisStream(at, "s", *words, **settings))


@pytest.fixture
def stream(open_stream):
    return open_stream()


@pytest.fixture
def writer(url):
    with RedisWriter(url, "s") as writer:
        yield writer


def again(stream):
    """Close a stream and set it to its position, as a resumed run does."""
    position = stream.position
    stream.close()
    stream.position = position


def data(samples):
    return [sample.data for sample in samples]


def pending(ask, group="onion"):
    return ask("XPENDING", "s", group)[0]


# -- reading -----------------------------------------------------------------------------------------------------------


def test_another_stream_of_the_same_key_loses_no_sample_silently(stream, writer, ask):
    """Entries are numbered: the numbers of a new stream do not continue those of the old one."""
    writer.write(list(range(5)))
    assert len(stream.read(9, 0)) == 5
    ask("DEL", "s", "s:count", "s:marks")
    writer.write(list(range(9)))
    again(stream)
    with pytest.raises(DataError, match="have been removed; resume from a newer checkpoint"):
        stream.read(9, 0)


def test_entries_of_others_in_another_stream_of_the_same_key_are_read(stream, ask):
    ask("XADD", "s", "*", "data", "1")
    assert data(stream.read(9, 0)) == [1]
    ask("DEL", "s")
    ask("XADD", "s", "*", "data", "2")
    again(stream)
    assert data(stream.read(9, 0)) == [2]


def test_it_waits_for_the_first(stream, writer):
    stream.read(1, 0)
    thread = threading.Thread(target=writer.write, args=(["a"],))
    thread.start()
    assert data(stream.read(5, PATIENCE)) == ["a"]
    thread.join()


MOVE = ("XGROUP", "SETID", "s", "onion", "0")


@pytest.mark.parametrize(
    ("command", "numbered"),
    [
        pytest.param(MOVE, True, id="moves it"),
        pytest.param(MOVE, False, id="moves it, entries without numbers"),
        pytest.param(("XREADGROUP", "GROUP", "onion", "b", "COUNT", 1, "STREAMS", "s", ">"), True, id="reads for it"),
        pytest.param(("XGROUP", "DESTROY", "s", "onion"), True, id="destroys it"),
    ],
)
def test_no_sample_is_lost_or_repeated_whatever_another_client_does_to_the_group(ask, stream, command, numbered):
    with RedisWriter(stream.url, "s") as writer:
        for number in range(3):
            writer.write([number]) if numbered else ask("XADD", "s", "*", "data", str(number))
    assert data(stream.read(1, 0)) == [0]
    ask(*command)
    assert data(stream.read(9, 1)) == [1, 2]
    ask(*MOVE)
    assert stream.read(9, 0) == []


def test_entries_whose_answer_was_lost_come_again(stream, writer, monkeypatch):
    stream.read(1, 0)
    writer.write([1, 2])
    call = stream._server.call

    def lose(*command):
        answer = call(*command)
        if command[0] == "XREADGROUP":
            monkeypatch.undo()
            stream._server.drop()
            raise AwayError("lost", sent=True)
        return answer

    monkeypatch.setattr(stream._server, "call", lose)
    assert stream.read(1, 0) == []
    assert data(stream.read(9, 0)) == [1, 2]


@pytest.mark.parametrize(
    ("fields", "sample"),
    [
        (["data", '{"a": 1}'], {"a": 1}),
        (["text", "a b", "label", "1"], {"text": "a b", "label": "1"}),
        (["data", "{broken"], {"data": "{broken"}),
        (["data", b"\xff"], {"data": "�"}),
        (["n", "7", "text", "a"], {"n": "7", "text": "a"}),
    ],
)
def test_entries_written_by_others_are_read(ask, stream, writer, fields, sample):
    writer.write([1])
    ask("XADD", "s", "*", *fields)
    writer.write([2])
    assert data(stream.read(1, 0)) == [1]
    assert data(stream.read(1, 0)) == [sample]
    assert data(stream.read(1, 0)) == [2]


# -- entries that are gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("commands", "resumed", "message"),
    [
        pytest.param([["FLUSHALL"]], True, "the last entry is none, .*; the server has lost data", id="all"),
        pytest.param([["DEL", "s"]], True, "the last entry is none, .*; the server has lost data", id="the stream"),
        pytest.param([["DEL", "s"]], False, "the last entry is none", id="the stream, while it is read"),
        pytest.param(
            [["DEL", "s"], ["XADD", "s", "1-1", "n", "1", "data", "1"]],
            *(True, r"this run has read up to .*; the server has lost data"),
            id="the end",
        ),
        pytest.param(
            [["FLUSHALL"], *(["XADD", "s", "*", "n", str(number), "data", "1"] for number in (1, 2, 3))],
            *(False, "have been removed; resume from a newer checkpoint"),
            id="all, while others came",
        ),
        pytest.param(
            [["DEL", "s"], ["SET", "s", "1"]], True, r"WRONGTYPE.*; check the key and the server", id="the kind"
        ),
    ],
)
def test_what_the_server_has_lost_is_an_error(ask, stream, writer, commands, resumed, message):
    writer.write([1, 2])
    stream.read(2, 0)
    for command in commands:
        ask(*command)
    if resumed:
        again(stream)
    with pytest.raises(DataError, match=message):
        stream.read(1, 5)


def test_entries_that_others_removed_are_an_error(ask, stream, writer):
    writer.write([1, 2, 3, 4])
    stream.read(1, 0)
    ask("XTRIM", "s", "MAXLEN", 2)
    with pytest.raises(DataError, match=r"entries behind position .* have been removed.*No other client may trim"):
        stream.read(9, 0)
    stream.position = ""
    assert data(stream.read(9, 0)) == [3, 4]


# -- acknowledging and removing ----------------------------------------------------------------------------------------


def test_a_commit_acknowledges_and_removes(ask, stream, writer):
    writer.write([1, 2, 3, 4])
    samples = stream.read(3, 0)
    assert pending(ask) == 3
    stream.commit(samples[1].position)
    assert pending(ask) == 1
    assert ask("XLEN", "s") == 2
    stream.commit("")
    assert pending(ask) == 1
    stream.position = samples[1].position
    assert data(stream.read(9, 0)) == [3, 4]


def test_what_another_group_has_not_acknowledged_stays(ask, open_stream, writer):
    writer.write([1, 2, 3])
    fast, slow = open_stream("fast"), open_stream("slow")
    fast.read(3, 0)
    samples = slow.read(2, 0)
    fast.commit(fast.position)
    assert ask("XLEN", "s") == 3
    slow.commit(samples[1].position)
    assert ask("XLEN", "s") == 2  # the last one that was delivered stays
    assert data(slow.read(9, 0)) == [3]


def test_entries_behind_a_position_that_was_set_back_stay(ask, stream, writer):
    writer.write([1, 2, 3, 4])
    samples = stream.read(4, 0)
    stream.commit(samples[0].position)
    stream.position = samples[1].position
    stream.read(1, 0)
    stream.commit(samples[1].position)
    assert data(stream.read(9, 0)) == [4]


def test_entries_stay_for_their_retention(ask, open_stream, writer):
    stream = open_stream(retention=timedelta(days=1))
    day = 24 * 3600 * 1000
    now = int(ask("TIME")[0]) * 1000
    ask("XADD", "s", f"{now - 2 * day}-0", "data", "1")
    ask("XADD", "s", f"{now - day // 2}-0", "data", "2")
    writer.write([3])
    stream.read(9, 0)
    stream.commit(stream.position)
    assert pending(ask) == 0
    assert ask("XLEN", "s") == 2
    stream.position = ""
    assert data(stream.read(9, 0)) == [2, 3]


def test_large_commits_are_acknowledged_in_portions(ask, stream, writer, monkeypatch):
    monkeypatch.setattr(redis_stream, "MAX_ACKNOWLEDGED", 3)
    writer.write(list(range(10)))
    samples = stream.read(10, 0)
    stream.commit(samples[7].position)
    assert pending(ask) == 2
    assert ask("XLEN", "s") == 2


# -- a server that is away ---------------------------------------------------------------------------------------------


def test_a_killed_server_is_waited_for(own_redis, open_stream, caplog):
    stream = open_stream(at=own_redis.url)
    with RedisWriter(own_redis.url, "s") as writer:
        writer.write([1, 2, 3], cursor="a")
        assert data(stream.read(1, 0)) == [1]
        own_redis.kill()
        assert stream.read(1, 0) == []
        assert stream.read(1, 0.2) == []
        assert stream.waiting() is None
        stream.commit(stream.position)
        own_redis.start()
        assert data(stream.read(9, PATIENCE)) == [2, 3]
        writer.write([4], cursor="b")
        assert data(stream.read(9, PATIENCE)) == [4]
        assert stream._server.call("XPENDING", "s", "onion")[0] == 3  # the commit was made later
    assert caplog.text.count("is away") == 1


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path, shared_redis, open_stream, monkeypatch):
    process = RedisProcess(tmp_path / "redis")
    stream = open_stream(at=process.url)
    waits = []
    with monkeypatch.context() as patched:
        patched.setattr(redis_stream, "sleep", waits.append)
        for module in (redis_stream, redis_server):
            patched.setattr(module, "monotonic", lambda: sum(waits))
        assert stream.read(1, 0.3) == []
    assert sum(waits) == pytest.approx(0.3)
    assert len(waits) <= 4  # each pause is longer than the one before
    with process, RedisWriter(process.url, "s") as writer:
        writer.write([1])
        assert data(stream.read(1, PATIENCE)) == [1]


@pytest.mark.parametrize(
    ("settings", "warned"),
    [({}, ""), ({"appendfsync": "everysec"}, "has appendfsync everysec"), ({"appendonly": "no"}, "has appendonly no")],
)
def test_a_server_that_may_lose_samples_is_logged_once(tmp_path, shared_redis, open_stream, settings, warned, caplog):
    with RedisProcess(tmp_path / "redis", **settings) as process:
        stream = open_stream(at=process.url)
        stream.read(1, 0)
        stream.position = ""
        stream.read(1, 0)
        stream.close()
    assert caplog.text.count("accepted samples may be lost when it crashes") == bool(warned)
    assert warned in caplog.text


@pytest.mark.parametrize("place", [Place(), Place("1700-2"), Place("1700-2", 5)])
def test_a_place_can_be_written_and_parsed(place):
    assert Place.parse(str(place)) == place


def test_ids_are_sorted_as_numbers():
    assert sorted(["10-0", "9-11", "9-2"], key=order) == ["9-2", "9-11", "10-0"]


@pytest.mark.parametrize(
    ("before", "entry", "number", "behind"),
    [
        (Place(), "5-0", 1, Place("5-0", 1)),
        (Place(), "5-0", 7, Place("5-0", 7)),
        (Place("5-0", 1), "5-1", 2, Place("5-1", 2)),
        (Place("5-0", 1), "5-1", None, Place("5-1", 1)),
        (Place("5-0", 1), "5-1", 3, None),
        (Place("5-0", 1), "5-1", 1, None),
        (Place("5-0", 1), "5-0", 2, None),
        (Place("5-0"), "4-9", None, None),
    ],
)
def test_only_the_next_entry_follows(before, entry, number, behind):
    assert before.then(entry, number) == behind
