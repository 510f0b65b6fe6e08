"""The socket, the thread and the connections of the service."""

import gc
import logging
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from onion.errors import OnionError
from onion.http import bounded
from onion.online.http import Limits, Service, server
from tests.online.http.calls import call, dialled, listening, rest
from tests.online.http.memory_run import TOKEN, MemoryRun, serving
from tests.patience import PATIENCE

STATUS = f"GET /status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


def open_files():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


# -- start and stop ----------------------------------------------------------------------------------------------------


def test_it_leaves_nothing_behind(caplog):
    with serving():  # what is opened once per process is open now
        pass
    gc.collect()
    threads, files, filters = set(threading.enumerate()), open_files(), list(logging.getLogger("asyncio").filters)
    with serving() as (run, service), listening(service) as events, dialled(service) as idle, dialled(service) as half:
        half.sendall(STATUS.replace(b"GET /status", b"POST /samples")[:-2] + b"Content-Length: 9\r\n\r\n1")
        next(events)
        call(service, "POST", "/samples", "1")  # which has worked in a thread
        run.open.clear()
        call(service, "POST", "/save?timeout=0")
        service.stop()
        assert rest(idle) == rest(half) == b""
        assert list(events) == []
    gc.collect()
    assert set(threading.enumerate()) <= threads
    assert open_files() <= files
    assert logging.getLogger("asyncio").filters == filters
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_queued_command_is_answered_when_the_service_stops():
    with serving() as (run, service):
        run.open.clear()
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(call(service, "POST", "/save?timeout=60")))
        waiting.start()
        assert run.asked.wait(PATIENCE)
        service.stop()
        waiting.join(PATIENCE)
        assert [(status, body) for status, _, body in answers] == [(202, {"queued": True})]


def test_a_hanging_call_does_not_delay_the_stop(monkeypatch, caplog):
    monkeypatch.setattr(server, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(bounded, "CLOSE_SECONDS", 0.1)
    go_on, inside = threading.Event(), threading.Event()

    def hang():
        inside.set()
        assert go_on.wait(PATIENCE)

    with serving() as (run, service), dialled(service) as connection:
        run.on_put = hang
        connection.sendall(STATUS.replace(b"GET /status", b"POST /samples")[:-2] + b"Content-Length: 1\r\n\r\n1")
        assert inside.wait(PATIENCE)
        [thread] = [thread for thread in threading.enumerate() if thread.name == "onion-service"]
        service.stop()
        assert rest(connection) == b""
        go_on.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert "is still running in its thread" in caplog.text


def test_answers_are_sent_without_delay():
    with serving(limits=Limits(keep_alive=PATIENCE)) as (_, service), dialled(service) as connection:
        connection.sendall(STATUS)
        connection.recv(65536)
        mine = connection.getsockname()
        [theirs] = [each for each in gc.get_objects() if isinstance(each, socket.socket) and goes_to(each, mine)]
        assert theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def goes_to(each, address):
    try:
        return each.getpeername() == address
    except OSError:
        return False


def test_it_starts_again_and_stops_twice():
    with MemoryRun() as run:
        service = Service(run, port=0, token=TOKEN)
        service.stop()
        for _ in range(2):
            service.start()
            assert call(service, "GET", "/status")[0] == 200
            with pytest.raises(OnionError, match="listens already"):
                service.start()
            service.stop()
            service.stop()
        service.start()
        service.stop()  # at once
        with pytest.raises(OSError):
            call(service, "GET", "/status")


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken, MemoryRun() as run:
        port = taken.getsockname()[1]
        with pytest.raises(OnionError, match=f"port {port}: Address already in use. Choose another port"):
            Service(run, port=port, token=TOKEN).start()


def test_an_unknown_host():
    with MemoryRun() as run, pytest.raises(OnionError, match=r"cannot listen at nowhere\.invalid"):
        Service(run, "nowhere.invalid", token=TOKEN).start()


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_invalid_port(port):
    with pytest.raises(OnionError, match=f"got {port}"):
        Service(MemoryRun(), port=port)


def test_the_loopback_address_of_ipv6():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with MemoryRun() as run, ExitStack() as stack:
        service = Service(run, "::1", port=0)
        try:
            service.start()
        except OnionError:
            pytest.skip("no IPv6 loopback here")
        stack.callback(service.stop)
        assert service.url.startswith("http://[::1]:")
        assert call(service, "GET", "/status", token=None)[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.org"])
def test_other_addresses_require_a_token(host):
    with pytest.raises(OnionError, match="without a token"):
        Service(MemoryRun(), host)
    Service(MemoryRun(), host, token=TOKEN)


def test_a_service_without_a_token_logs_one_warning(caplog):
    with serving(token=None) as (_, service):
        assert call(service, "GET", "/status", token=None)[0] == 200
        assert call(service, "GET", "/status", token=None, host="evil.example")[0] == 403
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.name for record in warnings] == ["onion"]
    assert "ONION_TOKEN" in warnings[0].getMessage()


def test_it_is_quiet_and_leaves_the_logs_of_other_servers_alone(caplog):
    caplog.set_level(logging.DEBUG)
    with serving() as (_, service):
        with dialled(service) as connection:
            connection.sendall(b"rubbish\r\n\r\n")
            assert b"400" in rest(connection)
        call(service, "GET", "/status")
        logging.getLogger("uvicorn.error").info("of another server")
    ours = [record for record in caplog.records if record.name == "onion"]
    assert any("Invalid HTTP request" in record.getMessage() for record in ours)
    assert {record.levelno for record in ours} == {logging.DEBUG}
    assert [record.getMessage() for record in caplog.records if record.name == "uvicorn.error"] == ["of another server"]
    assert not any(TOKEN in record.getMessage() for record in caplog.records)


def test_a_missing_extra_is_an_error():
    code = """
import sys
sys.modules["uvicorn"] = None
from onion.online.http import Service, server
from onion.errors import OnionError
try:
    Service(None)
except OnionError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "The service requires uvicorn; run: pip install 'onion-paddle[online]'\n"
