"""Connections: slow ones, many of them, and what they cannot do."""

import threading
from contextlib import ExitStack, suppress

import h11
import pytest

from onion.http.bounded import LINGER_BYTES
from onion.online.http import Limits
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
def test_an_incomplete_request_is_cut_off(begun):
    limits = Limits(seconds=0.1)
    with serving(limits=limits) as (run, service), dialled(service) as connection:
        connection.sendall(begun)
        answer = rest(connection)  # which ends: that is the test
        assert answer.startswith((SLOW, b"HTTP/1.1 404"))
        assert run.heard == run.samples == []
        give(limits, PATIENCE)
        assert call(service, "POST", "/pause")[0] == 200


def give(limits, seconds):
    """Change the time limit of later requests: valid ones may take longer on a busy machine."""
    object.__setattr__(limits, "seconds", seconds)


def test_single_bytes_do_not_extend_the_time():
    limits = Limits(seconds=0.2)
    with serving(limits=limits) as (_, service), dialled(service) as connection:
        connection.settimeout(0.01)
        for letter in b"GET /status " + HEAD + b"X: " + b"x" * 15_000:  # for minutes, unless it is cut off
            try:
                connection.sendall(bytes([letter]))
                assert connection.recv(1000).startswith((SLOW, b""))
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("all of it was accepted")
        give(limits, PATIENCE)
        assert call(service, "GET", "/status")[0] == 200


def test_a_command_may_take_longer_than_the_time_limit_of_requests():
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


def test_connections_beyond_the_limit_are_closed_unread():
    with serving(limits=Limits(connections=5)) as (_, service), ExitStack() as stack:
        first, surplus = ([stack.enter_context(dialled(service)) for _ in range(count)] for count in (5, 200))
        assert {rest(each) for each in surplus} == {b""}
        for each in first:
            each.sendall(b"GET /status " + HEAD + b"Connection: close\r\n\r\n")
            assert rest(each).startswith(b"HTTP/1.1 200")
        stack.close()
        assert call(service, "GET", "/status")[0] == 200


def test_a_client_that_does_not_read_is_cut_off():
    limits = Limits(seconds=PATIENCE, subscribers=1)
    with serving(limits=limits) as (run, service), listening(service) as events:
        next(events)
        give(limits, 0.1)
        big = {"text": "x" * 1_000_000}
        while not run.left.is_set():  # more than all buffers on the way can hold
            run.events.publish("metrics", big)
            run.left.wait(0.01)
        assert run.listeners == 0


def test_pipelined_requests_are_answered_in_order():
    with serving() as (run, service), dialled(service) as connection:
        connection.sendall(
            (b"POST /step?n=1 " + HEAD + b"\r\n") * 3 + b"POST /pause " + HEAD + b"Connection: close\r\n\r\n"
        )
        answer = rest(connection)
        assert answer.count(b"HTTP/1.1 200") == 4
        assert [command for command, _ in run.heard] == ["step"] * 3 + ["pause"]


def test_half_a_pipelined_request_is_cut_off():
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


def test_garbage_in_an_answered_body_closes_the_connection(caplog):
    with serving() as (_, service), dialled(service) as connection:
        connection.sendall(b"POST /nothing " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404")
        connection.sendall(b"no length\r\n")
        assert b"HTTP/1.1" not in rest(connection)
        assert call(service, "GET", "/status")[0] == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_garbage_behind_a_request_is_refused_after_its_answer():
    with serving() as (run, service), dialled(service) as connection:
        connection.sendall(b"POST /save " + HEAD + b"Content-Length: 5\r\n\r\n12345\x00\x00rubbish\r\n\r\n")
        answer = rest(connection)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"HTTP/1.1 400" in answer
        assert run.heard == [("save", {})]


# -- bodies of answered requests ---------------------------------------------------------------------------------------

STRANGER = b"POST /samples HTTP/1.1\r\nHost: localhost\r\n"
CHUNKS = b"1\r\nx\r\n" * 10_000


def poured(connection, piece):
    """Send a piece repeatedly until the other side closes; return the number of bytes sent."""
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
def test_an_endless_body_is_not_read_after_its_answer(header, piece):
    with serving(limits=Limits(seconds=PATIENCE, keep_alive=PATIENCE)) as (run, service):
        with dialled(service) as connection:
            connection.sendall(STRANGER + header)
            assert rest(connection).startswith(b"HTTP/1.1 401")  # and has an end, for clients that read while sending
            on_the_way = 32 * 2**20  # what the buffers of the system may hold at most
            assert poured(connection, piece) < LINGER_BYTES + on_the_way
        assert run.samples == []
        assert call(service, "GET", "/status")[0] == 200


def test_a_body_that_was_refused_early_is_read_so_that_the_client_gets_the_answer():
    with serving() as (_, service), dialled(service) as connection:
        body = b"x" * (LINGER_BYTES // 2)
        connection.sendall(STRANGER + b"Content-Length: %d\r\n\r\n" % len(body))
        connection.sendall(body)
        assert rest(connection).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(("at_once", "closes"), [(b"", True), (b"12", True), (b"12345", False)])
def test_a_client_that_is_answered_before_it_has_sent_all_is_told_that_the_connection_ends(at_once, closes):
    request = b"POST /nothing " + HEAD + b"Content-Length: 5\r\n\r\n"
    with serving() as (_, service), dialled(service) as connection:
        connection.sendall(request + at_once)
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        assert head.startswith(b"HTTP/1.1 404")
        assert (b"connection: close" in head) == closes
        if not closes:
            connection.sendall(request + at_once)
            assert connection.recv(65536)


def test_a_client_that_stays_after_the_answer_is_cut_off():
    limits = Limits(seconds=PATIENCE, keep_alive=0.05, connections=1)
    with serving(limits=limits) as (_, service), dialled(service) as connection:
        connection.sendall(STRANGER + b"Content-Length: 10\r\n\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 401")
        while True:  # until the place is free again
            with suppress(ConnectionError):
                assert call(service, "GET", "/status")[0] == 200
                break


def test_the_bytes_parsed_at_a_time_are_bounded(monkeypatch):
    """Chunks of one byte take a thousand times as long to parse as to receive, all of it before the answer."""
    pieces, receive = [], h11.Connection.receive_data

    def counted(connection, data):
        pieces.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(h11.Connection, "receive_data", counted)
    with serving() as (_, service), dialled(service) as connection:
        connection.sendall(STRANGER + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS)
        assert rest(connection).startswith(b"HTTP/1.1 401")
    assert sum(pieces) <= 2 * Limits().header
