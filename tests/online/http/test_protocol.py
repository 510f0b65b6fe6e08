"""Connections: slow ones, many of them, and what they cannot do."""

import socket
import threading
from contextlib import suppress

import h11
import pytest

from onion.online.http import Limits
from onion.online.http.bounded import LINGER_BYTES
from tests.online.http.calls import call, dialled, listening, rest
from tests.online.http.memory_run import TOKEN, serving
from tests.patience import PATIENCE

HEAD = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
SLOW = b"HTTP/1.1 408 Request Timeout"


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"P",
        b"POST /pause " + HEAD,
        b"POST /samples " + HEAD + b"Content-Length: 10\r\n\r\n",
        b"POST /samples " + HEAD + b"Content-Length: 10\r\n\r\n1\n",
        b"POST /samples " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n",
        b"POST /nothing " + HEAD + b"Content-Length: 10\r\n\r\n1\n",
    ],
)
def test_a_request_that_does_not_end_is_cut_off(begun):
    limits = Limits(seconds=0.1)
    with serving(limits=limits) as (run, service), dialled(service) as connection:
        connection.sendall(begun)
        answer = rest(connection)  # which ends: that is the test
        assert answer.startswith((SLOW, b"HTTP/1.1 404"))
        assert run.heard == run.samples == []
        give(limits, PATIENCE)
        assert call(service, "POST", "/pause")[0] == 200


def give(limits, seconds):
    """Change what requests may take from now on: those of a friend on a busy machine take longer than a test waits."""
    object.__setattr__(limits, "seconds", seconds)


def test_bytes_one_by_one_do_not_move_the_end():
    limits = Limits(seconds=0.2)
    with serving(limits=limits) as (_, service), dialled(service) as connection:
        connection.settimeout(0.01)
        for letter in b"GET /status " + HEAD + b"X: " + b"x" * 15_000:  # for minutes, if nobody cuts it off
            try:
                connection.sendall(bytes([letter]))
                assert connection.recv(1000).startswith((SLOW, b""))
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("all of it was taken")
        give(limits, PATIENCE)
        assert call(service, "GET", "/status")[0] == 200


def test_a_command_may_wait_longer_than_a_request_may_take_to_arrive():
    for seconds in (0.05, 0.5, 5.0, 50.0):  # until one arrives in time
        with serving(limits=Limits(seconds=seconds)) as (run, service):
            run.open.clear()
            release = threading.Timer(2 * seconds, run.open.set)
            release.start()
            with suppress(ConnectionError):
                status = call(service, "POST", "/save")[0]
            release.join()
            if run.asked.is_set():
                assert status == 200
                return
    pytest.fail("no request has arrived")


def test_connections_beyond_the_limit_are_closed_unheard():
    with serving(limits=Limits(connections=5)) as (_, service):
        address = service.url.removeprefix("http://").split(":")
        sockets = [socket.create_connection((address[0], int(address[1])), PATIENCE) for _ in range(5)]
        surplus = [socket.create_connection((address[0], int(address[1])), PATIENCE) for _ in range(200)]
        try:
            assert {rest(each) for each in surplus} == {b""}
            for each in sockets:  # those that were there first are served
                each.sendall(b"GET /status " + HEAD + b"Connection: close\r\n\r\n")
                assert rest(each).startswith(b"HTTP/1.1 200")
        finally:
            for each in sockets + surplus:
                each.close()
        assert call(service, "GET", "/status")[0] == 200


def test_who_does_not_read_is_cut_off():
    limits = Limits(seconds=PATIENCE, subscribers=1)
    with serving(limits=limits) as (run, service), listening(service) as events:
        next(events)
        give(limits, 0.1)
        big = {"text": "x" * 1_000_000}
        while not run.left.is_set():  # more than all buffers on the way can hold
            run.events.publish("metrics", big)
            run.left.wait(0.01)
        assert run.listeners == 0


def test_requests_behind_each_other_are_answered_in_order():
    with serving() as (run, service), dialled(service) as connection:
        connection.sendall(
            (b"POST /step?n=1 " + HEAD + b"\r\n") * 3 + b"POST /pause " + HEAD + b"Connection: close\r\n\r\n"
        )
        answer = rest(connection)
        assert answer.count(b"HTTP/1.1 200") == 4
        assert [command for command, _ in run.heard] == ["step"] * 3 + ["pause"]


def test_half_a_request_behind_another_is_cut_off():
    limits = Limits(seconds=PATIENCE)
    with serving(limits=limits) as (run, service), dialled(service) as connection:
        run.open.clear()
        connection.sendall(b"POST /pause " + HEAD + b"\r\nPOST /samples " + HEAD + b"Content-Length: 9\r\n\r\n1")
        assert run.asked.wait(PATIENCE)
        give(limits, 0.1)
        run.open.set()
        assert rest(connection).startswith(b"HTTP/1.1 200")
        assert run.samples == []


def test_an_idle_connection_is_closed():
    with serving(limits=Limits(keep_alive=0.05)) as (_, service), dialled(service) as connection:
        connection.sendall(b"GET /status " + HEAD + b"\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 200")


def test_rubbish_in_a_body_that_was_answered_ends_the_connection(caplog):
    with serving() as (_, service), dialled(service) as connection:
        connection.sendall(b"POST /nothing " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404")
        connection.sendall(b"no length\r\n")
        assert b"HTTP/1.1" not in rest(connection)
        assert call(service, "GET", "/status")[0] == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_rubbish_behind_a_request_is_refused_after_its_answer():
    with serving() as (run, service), dialled(service) as connection:
        connection.sendall(b"POST /save " + HEAD + b"Content-Length: 5\r\n\r\n12345\x00\x00rubbish\r\n\r\n")
        answer = rest(connection)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"HTTP/1.1 400" in answer
        assert run.heard == [("save", {})]


# -- bodies that nobody asks for any more ------------------------------------------------------------------------------

STRANGER = b"POST /samples HTTP/1.1\r\nHost: localhost\r\n"
CHUNKS = b"1\r\nx\r\n" * 10_000


def poured(connection, piece):
    """Send a piece again and again until the other side closes; return how many bytes it took."""
    taken = 0
    with suppress(ConnectionError):
        while True:
            connection.sendall(piece)
            taken += len(piece)
    return taken


@pytest.mark.parametrize(
    ("header", "piece"),
    [(b"Transfer-Encoding: chunked\r\n\r\n", CHUNKS), (b"Content-Length: 999999999999\r\n\r\n", b"x" * 60_000)],
)
def test_a_body_without_an_end_is_not_taken_after_its_answer(header, piece):
    with serving(limits=Limits(seconds=PATIENCE, keep_alive=PATIENCE)) as (run, service):
        with dialled(service) as connection:
            connection.sendall(STRANGER + header)
            assert rest(connection).startswith(b"HTTP/1.1 401")  # and has an end, for who reads while sending
            on_the_way = 32 * 2**20  # what the buffers of the system may hold at most
            assert poured(connection, piece) < LINGER_BYTES + on_the_way
        assert run.samples == []
        assert call(service, "GET", "/status")[0] == 200


def test_a_body_that_was_refused_before_it_came_is_taken_so_that_the_answer_is_read():
    with serving() as (_, service), dialled(service) as connection:
        body = b"x" * (LINGER_BYTES // 2)
        connection.sendall(STRANGER + b"Content-Length: %d\r\n\r\n" % len(body))
        connection.sendall(body)
        assert rest(connection).startswith(b"HTTP/1.1 401")


def test_who_stays_after_the_answer_is_cut_off():
    limits = Limits(seconds=PATIENCE, keep_alive=0.05, connections=1)
    with serving(limits=limits) as (_, service), dialled(service) as connection:
        connection.sendall(STRANGER + b"Content-Length: 10\r\n\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 401")
        while True:  # until the place is free again
            with suppress(ConnectionError):
                assert call(service, "GET", "/status")[0] == 200
                break


def test_what_is_parsed_at_a_stretch_is_bounded(monkeypatch):
    """Chunks of a byte each take a thousand times as long to parse as to receive, and all of it before the answer."""
    pieces, receive = [], h11.Connection.receive_data

    def counted(connection, data):
        pieces.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(h11.Connection, "receive_data", counted)
    with serving() as (_, service), dialled(service) as connection:
        connection.sendall(STRANGER + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS)
        assert rest(connection).startswith(b"HTTP/1.1 401")
    assert sum(pieces) <= 2 * Limits().header
