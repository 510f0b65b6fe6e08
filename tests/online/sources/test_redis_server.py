"""RedisServer: a connection that sends a command once, to a server that may be unreachable."""

import socket
import sys
import threading

import pytest

from onion.errors import DataError, OnionError
from onion.online.sources import redis_server
from onion.online.sources.redis_server import AwayError, RedisServer, RefusedError
from tests.online.sources.redis_process import RedisProcess
from tests.patience import PATIENCE


def test_it_sends_commands_and_returns_plain_answers(url):
    server = RedisServer(url)
    assert not server.is_connected
    assert server.call("SET", "a", "旅") == b"OK"
    assert server.call("GET", "a") == "旅".encode()
    assert server.call("INCRBY", "n", 3) == 3
    assert server.call("GET", "none") is None
    assert server.call("HGETALL", "none") == []
    assert server.is_connected
    assert server.connections == 1
    server.drop()
    assert server.call("PING") == b"PONG"
    assert server.connections == 2
    server.drop()


def test_an_error_of_the_server_has_its_code(url):
    server = RedisServer(url)
    server.call("SET", "a", "1")
    with pytest.raises(RefusedError, match="WRONGTYPE") as caught:
        server.call("XLEN", "a")
    assert caught.value.code == "WRONGTYPE"
    assert server.is_connected
    server.drop()


def test_a_server_that_is_not_there_is_away(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(redis_server, "monotonic", lambda: now[0])
    server = RedisServer("redis://127.0.0.1:1")
    pauses = []
    for _ in range(7):
        with pytest.raises(AwayError) as caught:
            server.call("PING")
        assert not caught.value.sent
        pauses.append(server.pause)
        now[0] += 100
        assert server.pause == 0
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_a_killed_server_is_away_and_then_back(own_redis):
    server = RedisServer(own_redis.url)
    server.call("SET", "a", "1")
    own_redis.kill()
    with pytest.raises(AwayError) as caught:
        server.call("GET", "a")
    assert caught.value.sent  # or it may be, as far as is known
    own_redis.start()
    assert server.call("GET", "a") == b"1"
    assert server.connections == 2
    own_redis.kill()
    with pytest.raises(AwayError):
        server.call("GET", "a")
    assert server.pause <= redis_server.FIRST_RETRY_SECONDS  # it had been there


def test_nothing_is_sent_twice():
    """A server that accepts a command and disconnects without an answer gets it once."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def listen():
            while True:
                connection, _ = listener.accept()
                with connection, connection.makefile("rwb") as stream:
                    while line := stream.readline():
                        if line.startswith(b"*"):
                            words = [(stream.readline(), stream.readline())[1].strip() for _ in range(int(line[1:]))]
                            heard.append(words)
                            if words[0] == b"INCR":
                                break
                            stream.write(b"+OK\r\n")
                            stream.flush()
                if heard[-1][0] == b"INCR":
                    return

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        with pytest.raises(AwayError) as caught:
            RedisServer(f"redis://127.0.0.1:{port}").call("INCR", "a")
        thread.join(PATIENCE)
    assert caught.value.sent
    assert [words for words in heard if words[0] == b"INCR"] == [[b"INCR", b"a"]]


def test_a_wrong_password_is_refused_and_not_shown(tmp_path, shared_redis):
    with RedisProcess(tmp_path / "redis", requirepass="right") as process:
        right = RedisServer(process.url_with("right"))
        assert right.call("PING") == b"PONG"
        right.drop()
        for url in (process.url_with("secret"), process.url):
            with pytest.raises(DataError, match=r"denies access .*; check user and password") as caught:
                RedisServer(url).call("PING")
            assert "secret" not in str(caught.value)


def test_an_interrupted_call_leaves_no_answer_behind(url, monkeypatch):
    server = RedisServer(url)
    server.call("PING")

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(server._connection, "read_response", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.call("SET", "a", "1")
    assert server.call("ECHO", "mine") == b"mine"
    server.drop()


@pytest.mark.parametrize("url", ["http://host", "nonsense", "redis://host:port"])
def test_an_invalid_url_is_refused(url):
    with pytest.raises(DataError, match=r"not the URL of a Redis server .*; it must be like redis://host:6379/0"):
        RedisServer(url).call("PING")


def test_a_missing_package_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(OnionError, match=r"pip install 'onion-paddle\[redis\]'"):
        RedisServer("redis://host").call("PING")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("redis://user:secret@host:6379/0", "redis://host:6379/0"),
        ("rediss://host", "rediss://host"),
        ("unix://:secret@/run/redis.sock?db=1", "unix:///run/redis.sock"),
    ],
)
def test_its_name_has_no_password(url, name):
    assert RedisServer(url).name == name
