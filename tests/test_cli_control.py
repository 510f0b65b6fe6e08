"""``onion ctl`` against a real service with a run in memory behind it."""

import io
import json
import os
import pty
import re
import socket
import sys
import threading
from contextlib import contextmanager

import pytest

from onion.cli import main, remote
from onion.online.http import Service
from onion.online.sources.source import Full
from tests.fresh_python import python
from tests.online.http.memory_run import TOKEN, MemoryRun
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _around(monkeypatch):
    monkeypatch.setattr(remote, "RETRY_SECONDS", 0.0)
    monkeypatch.setenv("ONION_TOKEN", TOKEN)
    monkeypatch.delenv("ONION_URL", raising=False)


class Stand:
    """A run where one takes the place of the other, so that one service serves all tests."""

    run = None

    def __getattr__(self, name):
        return getattr(self.run, name)


@pytest.fixture(scope="module")
def standing():
    stand = Stand()
    service = Service(stand, port=0, token=TOKEN)
    service.start()
    yield stand, service
    service.stop()


@pytest.fixture
def served(standing):
    stand, service = standing
    with MemoryRun() as stand.run:
        yield stand.run, service


@pytest.fixture
def ctl(served, capsys):
    """Run a command; return exit status, standard output, standard error."""

    def run(*words, url=served[1].url):
        status = main(["ctl", *words, *(["--url", url] if url else [])])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def refused(ctl):
    """Run a command that fails; return its standard error."""

    def run(*words, **options):
        status, out, err = ctl(*words, **options)
        assert (status, out) == (2, "")
        return err

    return run


@pytest.mark.parametrize(
    ("words", "command", "arguments"),
    [
        (["pause"], "pause", {}),
        (["resume"], "resume", {}),
        (["step"], "step", {"n": 1}),
        (["step", "25"], "step", {"n": 25}),
        (["save"], "save", {}),
        (["test", "--timeout", "5"], "test", {}),
        (["stop", "--yes"], "stop", {"why": "requested over the network"}),
        (["stop", "--yes", "--why", "ça va & co"], "stop", {"why": "ça va & co"}),
        (["set", "learning_rate=0.25"], "set", {"learning_rate": 0.25}),
        (["enable", "replay"], "enable", {"ring": "replay"}),
        (["disable", "replay"], "disable", {"ring": "replay"}),
    ],
)
def test_commands(served, ctl, words, command, arguments):
    status, out, _ = ctl(*words)
    assert status == 0
    assert json.loads(out) == {"number": 1, "command": command, "step": 10, "result": {"done": True}}
    assert out.count("\n") == 1
    assert served[0].heard == [(command, arguments)]


def test_looking(served, ctl, monkeypatch):
    run, _ = served
    assert json.loads(ctl("status")[1]) == run.status()
    assert json.loads(ctl("show")[1]) == run.onion()
    assert "onion_step 10.0\n" in ctl("metrics")[1]
    monkeypatch.setenv("ONION_URL", served[1].url + "/")
    assert ctl("status", url=None)[0] == 0
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    assert ctl("status")[0] == 0


def test_the_token_of_a_file(ctl, refused, monkeypatch, tmp_path):
    monkeypatch.delenv("ONION_TOKEN")
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    assert "chmod 600" in refused("status", "--token-file", str(file))
    file.chmod(0o600)
    assert ctl("status", "--token-file", str(file))[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["set", "learning_rate=7"], "onion: learning_rate=7 is invalid.\n"),
        (["enable", "no such ring"], "onion: 'no such ring' is no ring.\n"),
        (["enable", "../../stop"], "onion: '../../stop' is no ring.\n"),
    ],
)
def test_a_refusal_is_told(served, ctl, words, told):
    assert ctl(*words) == (2, "", told)
    assert served[0].heard == []


def test_a_command_that_fails_and_one_that_stays_in_line(served, ctl):
    served[0].failing["save"] = "the disk is full"
    assert ctl("save") == (2, "", "onion: command 1, save, failed after step 10: the disk is full\n")
    served[0].open.clear()
    assert ctl("save", "--timeout", "0")[:2] == (0, '{"queued": true}\n')


def test_a_wrong_token(served, refused, monkeypatch):
    for token in ("wrong" * 5, None):
        monkeypatch.setenv("ONION_TOKEN", token) if token else monkeypatch.delenv("ONION_TOKEN")
        err = refused("pause")
        assert ("--token-file" in err, "wrong" in err) == (True, False)
    assert served[0].heard == []


@pytest.mark.parametrize(
    "words", [["step", "0"], ["step", "x"], ["pause", "--timeout", "61"], ["set"], ["set", "x"], []]
)
def test_mistakes_in_the_words(ctl, words):
    with pytest.raises(SystemExit) as left:
        ctl(*words)
    assert left.value.code == 2


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8765", "file:///etc/passwd", "ftp://x", "http://", "http://a b", "http://u:p@x", "http://x:99999"],
)
def test_no_address(refused, url):
    assert "is not an address such as http://127.0.0.1:8765" in refused("status", url=url)


def test_what_does_not_answer_or_redirects_is_told(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert "nothing listens there" in refused("status", url=f"http://127.0.0.1:{port}")
    with answering(*[b""] * remote.ATTEMPTS) as (url, requests):
        assert "the connection was lost" in refused("pause", url=url)
    assert len(requests) == remote.ATTEMPTS
    with answering(answer("", "302 Found", "Location: http://127.0.0.1:1/elsewhere\r\n")) as (url, _):
        assert "302" in refused("pause", url=url)


@contextmanager
def answering(*answers):
    """Serve connections one by one with the given bytes, b"" for none; yield the address and the requests."""
    requests = []

    def work(listening):
        for answer in answers:
            with listening.accept()[0] as connection:
                connection.settimeout(PATIENCE)
                requests.append(connection.recv(65536).decode())
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)
        thread = threading.Thread(target=work, args=(listening,))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", requests
        thread.join(PATIENCE)
        assert not thread.is_alive()


def answer(body, status="200 OK", headers="Content-Type: application/json\r\n", length=None):
    length = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}".encode()


def test_a_lost_connection_is_taken_up_again_with_the_same_key(ctl):
    with answering(b"", b"HTTP/1.1 200 OK\r\n", answer("{", length=99), answer('{"step": 3}')) as (url, requests):
        assert ctl("pause", url=url)[:2] == (0, '{"step": 3}\n')
    keys = [re.search("(?i)idempotency-key: ([0-9a-f]{32})", request).group(1) for request in requests]
    assert len(keys) == 4
    assert len(set(keys)) == 1


def test_each_call_has_a_key_of_its_own(served, ctl):
    for _ in range(2):
        ctl("save")
    assert served[0].heard == [("save", {})] * 2


@pytest.mark.parametrize(
    "reply", [answer("<html>", "404 Not Found", ""), answer("[]", "500 No"), answer("{"), answer("", headers="")]
)
def test_another_server(ctl, reply):
    with answering(reply) as (url, _):
        assert "is this the service of a run?" in ctl("pause", url=url)[2]


def test_a_token_that_goes_unencrypted_is_warned_of(ctl, monkeypatch, caplog):
    with answering(answer("{}")) as (url, _):
        monkeypatch.setenv("http_proxy", url)  # which is asked instead of that host
        assert ctl("status", url="http://runs.example")[0] == 0
    assert "unencrypted" in caplog.text
    assert TOKEN not in caplog.text


def test_samples_of_a_file_and_of_standard_input(served, ctl, tmp_path, monkeypatch):
    monkeypatch.setattr("onion.cli.control.SAMPLES_PER_CALL", 10)
    (tmp_path / "a.jsonl").write_text("\n".join(map(str, range(25))) + "\n\n" * 30 + "25")
    assert ctl("samples", str(tmp_path / "a.jsonl"))[:2] == (0, '{"taken": 26}\n')
    assert [sample for _, sample in served[0].samples] == list(range(26))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'"a"\n"b"\n')))
    assert ctl("samples", "-")[:2] == (0, '{"taken": 2}\n')


def test_a_bad_line_and_a_missing_file(refused, tmp_path, monkeypatch):
    monkeypatch.setattr("onion.cli.control.SAMPLES_PER_CALL", 2)
    (tmp_path / "a.jsonl").write_text("1\n2\n3\n{\n")
    err = refused("samples", str(tmp_path / "a.jsonl"))
    assert "a.jsonl, of the lines 3 to 4: Line 2: " in err
    assert "The 2 samples before were taken." in err
    for action in ("samples", "predict"):
        assert "cannot be read" in refused(action, str(tmp_path / "none"))


def test_where_there_is_no_room_it_waits(served, ctl, tmp_path):
    run, times = served[0], iter([1, 1, 0])

    def full():
        if next(times):
            raise Full(0)

    run.on_put = full
    (tmp_path / "a.jsonl").write_text("5")
    assert ctl("samples", str(tmp_path / "a.jsonl"))[:2] == (0, '{"taken": 1}\n')
    assert [sample for _, sample in run.samples] == [5]


def test_samples_that_were_taken_though_the_answer_was_lost(served, ctl, tmp_path, monkeypatch):
    run, _ = served
    opened, lost = remote.Remote.opened, iter([True, False])

    @contextmanager
    def losing(self, *given):
        with opened(self, *given) as answer:
            yield answer
        if next(lost):
            raise remote.LostError(self.url, "on the way back")

    monkeypatch.setattr(remote.Remote, "opened", losing)
    (tmp_path / "a.jsonl").write_text("5\n6\n")
    assert ctl("samples", str(tmp_path / "a.jsonl"))[:2] == (0, '{"taken": 2}\n')
    assert [sample for _, sample in run.samples] == [5, 6]


def test_predictions(ctl, tmp_path):
    (tmp_path / "a.jsonl").write_text('"ab"\n\n"abc"\n')
    assert ctl("predict", str(tmp_path / "a.jsonl"))[:2] == (0, '{"predictions": [2, 3], "step": 10}\n')
    (tmp_path / "a.jsonl").write_text('"ab"\n\nabc\n')
    assert "a.jsonl, line 3: no JSON value" in ctl("predict", str(tmp_path / "a.jsonl"))[2]


def test_events_until_the_run_ends(served, ctl):
    run, _ = served
    run.state = "ended"
    subscribe = run.events.subscribe

    def subscribe_to_an_end():
        queue = subscribe()
        run.events.publish("metrics", {"step": 3, "text": "好\n"})
        run.events.end()
        return queue

    run.events.subscribe = subscribe_to_an_end
    status, out, _ = ctl("events")
    first, metrics, last = map(json.loads, out.splitlines())
    assert (status, first["event"], last["event"]) == (0, "status", "status")
    assert metrics == {"event": "metrics", "step": 3, "text": "好\n"}


@pytest.mark.parametrize("text", ["", "event: a\ndata: {", "event: a\ndata: {}\n\n"])
@pytest.mark.parametrize(("missing", "end"), [(9, ""), (0, "\r\n0\r\n\r\n")])
def test_events_that_break_off(ctl, text, missing, end):
    chunk = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{len(text) + missing:x}\r\n{text}{end}"
    with answering(chunk.encode()) as (url, _):
        status, _, err = ctl("events", url=url)
    assert (status, "the connection was lost" in err) == (2, True)


@pytest.mark.parametrize(("typed", "status", "heard"), [("n\n", 2, 0), ("\n", 2, 0), ("y\n", 0, 1)])
def test_at_a_terminal_stop_asks_first(served, ctl, monkeypatch, typed, status, heard):
    main_end, terminal = pty.openpty()
    os.write(main_end, typed.encode())
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        got, _, err = ctl("stop")
    os.close(main_end)
    assert err.startswith(f"Stop the run at {served[1].url}? [y/N] ")
    assert (got, len(served[0].heard)) == (status, heard)


def test_it_loads_neither_paddle_nor_a_server():
    heavy = {"paddle", "numpy", "fastapi", "starlette", "uvicorn", "prometheus_client"}
    code = "import sys\nfrom onion.cli import main\nmain(['ctl', 'status', '--url', 'http://127.0.0.1:1'])\n"
    assert python(f"{code}print({heavy} & set(sys.modules))")[0] == "set()"
