"""The calls: commands, samples, predictions, events."""

import math
import threading

import pytest

from onion.http.refused import Refused
from onion.online.http import Limits, routes
from onion.online.sources.source import Full
from tests.online.http.calls import call, listening, streaming
from tests.online.http.memory_run import serving
from tests.patience import PATIENCE


@pytest.mark.parametrize(
    ("method", "path", "body", "command", "arguments"),
    [
        ("POST", "/pause", None, "pause", {}),
        ("POST", "/resume", None, "resume", {}),
        ("POST", "/step", None, "step", {"n": 1}),
        ("POST", "/step?n=25&timeout=5", None, "step", {"n": 25}),
        ("POST", "/save", None, "save", {}),
        ("POST", "/test", None, "test", {}),
        ("POST", "/stop", None, "stop", {"why": "requested over the network"}),
        ("POST", "/stop?why=seen%20enough", None, "stop", {"why": "seen enough"}),
        ("PATCH", "/settings", {"learning_rate": 0.25}, "set", {"learning_rate": 0.25}),
        ("POST", "/rings/replay/enable", None, "enable", {"ring": "replay"}),
        ("POST", "/rings/replay/disable", None, "disable", {"ring": "replay"}),
    ],
)
def test_a_command_is_answered_with_its_step(served, method, path, body, command, arguments):
    run, service = served
    status, _, answer = call(service, method, path, body)
    assert status == 200
    assert answer == {"number": 1, "command": command, "step": 10, "result": {"done": True}}
    assert run.heard == [(command, arguments)]


def test_a_command_that_fails_is_answered_with_its_error(served):
    run, service = served
    run.failing["save"] = "the disk is full"
    status, _, answer = call(service, "POST", "/save")
    assert (status, answer["error"], answer["step"]) == (500, "the disk is full", 10)


def test_a_slow_command_stays_queued_and_is_carried_out_once(served):
    run, service = served
    run.open.clear()
    for _ in range(2):
        status, _, answer = call(service, "POST", "/save?timeout=0", headers={"Idempotency-Key": "k 1"})
        assert (status, answer) == (202, {"queued": True})
    run.open.set()
    assert call(service, "POST", "/save", headers={"Idempotency-Key": "k 1"})[2]["number"] == 1
    assert run.heard == [("save", {})]
    assert call(service, "POST", "/save", headers={"Idempotency-Key": "k 2"})[2]["number"] == 2


def test_two_calls_wait_for_one_answer_and_one_that_leaves_does_not_cancel_it(served):
    run, service = served
    run.open.clear()
    key = {"Idempotency-Key": "shared"}
    answers = []
    patient = threading.Thread(target=lambda: answers.append(call(service, "POST", "/save", headers=key)))
    patient.start()
    assert call(service, "POST", "/save?timeout=0.01", headers=key)[0] == 202
    run.open.set()
    patient.join(PATIENCE)
    assert answers[0][0] == 200


def test_a_run_that_ends_refuses_pending_commands(served):
    run, service = served
    future = run.ask("save", {}, "lost")
    future.result(PATIENCE)
    for outcome in (Refused("the run has ended.", 409), None):
        run.open.clear()
        waiting = run.ask("save", {}, str(outcome))
        waiting.cancel() if outcome is None else waiting.set_exception(outcome)
        status, _, answer = call(service, "POST", "/save", headers={"Idempotency-Key": str(outcome)})
        assert status == 409
        assert "ended" in answer["error"]


def test_a_refusal_of_the_run_is_passed_on(shared):
    run, service = shared
    status, _, answer = call(service, "POST", "/rings/nothing/enable")
    assert (status, answer) == (404, {"error": "'nothing' is no ring."})
    assert call(service, "PATCH", "/settings", {"learning_rate": 2})[0] == 400
    assert run.heard == []


@pytest.mark.parametrize("key", ["k" * 201, "a\tb", "caf\xe9", ""])
def test_a_key_is_short_and_printable(shared, key):
    run, service = shared
    status, _, answer = call(service, "POST", "/pause", headers={"Idempotency-Key": key.encode("latin-1")})
    assert status == 400
    assert answer["error"].lower().startswith("idempotency-key: ")
    assert run.heard == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        *(("", "Expecting value"), ("[]", "not a JSON object"), ("{}", "contains no setting"), (b"\xff\xfe", "UTF-8")),
        ('{"learning_rate": NaN}', "NaN is not JSON"),
        *((f'{{"learning_rate": {number}}}', "64 bits") for number in ("1e999", "9" * 5000)),
        ('{"learning_rate": 0.1, "learning_rate": 0.2}', "twice"),
        ('{"learning_rate": ' + "[" * 20000 + "]" * 20000 + "}", "64 nested lists"),
    ],
)
def test_settings_are_strict_json(shared, body, words):
    run, service = shared
    status, _, answer = call(service, "PATCH", "/settings", body)
    assert status == 400
    assert words in answer["error"]
    assert run.heard == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        *((f"/step?n={n}", "n: ") for n in ("0", "-1", "1.5", "1000000001", "9" * 6000)),
        *((f"/pause?timeout={timeout}", "timeout: ") for timeout in ("61", "-1", "nan", "1e999")),
        *((f"/stop?why={why}", "why: ") for why in ("", "x" * 201)),
        *(("/step?m=5", "Unknown parameter 'm'"), ("/pause?n=5", "Unknown parameter 'n'")),
        *(("/pause?key=k", "Unknown parameter 'key'"), ("/save?path=/etc", "Unknown parameter 'path'")),
    ],
)
def test_a_wrong_parameter_is_refused(shared, path, words):
    run, service = shared
    status, _, answer = call(service, "POST", path)
    assert status == 400
    assert answer["error"].startswith(words)
    assert run.heard == []


def test_samples(served):
    run, service = served
    body = '{"text": "好"}\n\n  [1, 2.5, null]\r\n"last"'
    assert call(service, "POST", "/samples", body.encode())[2] == {"taken": 3}
    assert run.samples == [("http", {"text": "好"}), ("http", [1, 2.5, None]), ("http", "last")]


def test_samples_with_a_known_cursor_are_not_taken_again(served):
    run, service = served
    for taken in (1, 0):
        assert call(service, "POST", "/samples?producer=p&cursor=m", "5")[2] == {"taken": taken}
    assert run.samples == [("p", 5)]


@pytest.mark.parametrize("query", ["cursor=m", "producer=", "producer=" + "p" * 201, "path=/tmp/x"])
def test_invalid_producers_and_cursors_are_refused(shared, query):
    run, service = shared
    assert call(service, "POST", f"/samples?{query}", "5")[0] == 400
    assert run.samples == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'1\n{"a": }\n3', "Line 2: Expecting value at character 7; no sample was accepted."),
        (b"1\n\n\nInfinity", "Line 4: Infinity is not JSON"),
        (b"1\n" + b"7" * 5000, "Line 2: the number 77777777777777777777... does not fit"),
        (b"[" * 100_000, "Line 1: more than 64 nested lists"),
        (rb'"\ud800"', "Line 1: a string contains half a surrogate pair"),
        (b"1\n\xff", "Line 2: byte 1 is not UTF-8"),
        (b"\n \n", "The body is empty"),
    ],
)
def test_an_invalid_line_is_named_and_no_sample_is_accepted(shared, body, words):
    run, service = shared
    status, _, answer = call(service, "POST", "/samples", body)
    assert status == 400
    assert answer["error"].startswith(words)
    assert run.samples == []


def test_a_full_stream_says_when_to_try_again(served):
    run, service = served

    def full():
        raise Full(2.5)

    run.on_put = full
    status, headers, answer = call(service, "POST", "/samples", "1")
    assert status == 429
    assert headers["retry-after"] == "3"
    assert "no room" in answer["error"]


@pytest.mark.parametrize(
    ("method", "path", "length"), [("PATCH", "/settings", 101), ("POST", "/predict", 101), ("POST", "/samples", 1001)]
)
def test_bodies_have_limits(limited, method, path, length):
    run, service = limited
    whole = b"1" * length
    assert call(service, method, path, whole)[0] == 413
    assert call(service, method, path, iter([whole[:50], whole[50:]]))[0] == 413  # chunked: without a length
    assert run.samples == run.heard == []


@pytest.mark.parametrize(
    ("body", "status"),
    [(b'"' + b"x" * 300 + b'"', 400), (b"1\n" * 21, 413), (b'"' + b"x" * 298 + b'"', 200), (b"1\n" * 20, 200)],
)
def test_samples_have_limits(limited, body, status):
    run, service = limited
    assert call(service, "POST", "/samples", body)[0] == status
    assert bool(run.samples) == (status == 200)


@pytest.fixture
def limited():
    with serving(limits=Limits(body=100, samples_body=1000, sample=300, samples=20)) as (run, service):
        yield run, service


def test_a_compressed_body_is_refused(shared):
    run, service = shared
    assert call(service, "POST", "/samples", b"1", headers={"Content-Encoding": "gzip"})[0] == 415
    assert run.samples == []


def test_concurrent_uploads_are_limited():
    with serving(limits=Limits(uploads=1)) as (run, service):
        inside, go_on = threading.Event(), threading.Event()

        def hold():
            inside.set()
            assert go_on.wait(PATIENCE)

        run.on_put = hold
        first = threading.Thread(target=call, args=(service, "POST", "/samples", "1"))
        first.start()
        assert inside.wait(PATIENCE)
        status, headers, _ = call(service, "POST", "/samples", "2")
        assert (status, headers["retry-after"]) == (503, "1")
        assert call(service, "POST", "/pause")[0] == 200  # other calls are answered
        go_on.set()
        first.join(PATIENCE)
        assert run.samples == [("http", 1)]


def test_predict(shared):
    assert call(shared[1], "POST", "/predict", {"inputs": ["a", "bcd"]})[2] == {"predictions": [1, 3], "step": 10}
    for wrong in ({"inputs": ["bad"]}, ["a"], {"input": "a"}):
        assert call(shared[1], "POST", "/predict", wrong)[0] == 400


def test_events_arrive_until_the_run_ends(served):
    run, service = served
    with listening(service) as events:
        assert next(events) == ("status", run.status())
        run.events.publish("metrics", {"step": 11, "loss": math.nan, "name": "a\nb"})
        assert next(events) == ("metrics", {"step": 11, "loss": None, "name": "a\nb"})
        call(service, "POST", "/stop")
        kind, answer = next(events)
        assert (kind, answer["command"]) == ("command", "stop")
        kind, status = next(events)
        assert (kind, status["state"]) == ("status", "ended")
        assert list(events) == []
    assert run.left.wait(PATIENCE)


def test_a_subscriber_that_leaves_makes_room():
    with serving(limits=Limits(subscribers=1)) as (run, service):
        with listening(service) as events:
            next(events)
            status, headers, _ = call(service, "GET", "/events")
            assert (status, headers["retry-after"]) == (503, "1")
        assert run.left.wait(PATIENCE)
        with listening(service) as events:
            assert next(events)[0] == "status"


def test_a_silent_stream_has_heartbeats(served, monkeypatch):
    monkeypatch.setattr(routes, "HEARTBEAT_SECONDS", 0.0)
    with streaming(served[1]) as answer:
        assert any(answer.readline() == b":\n" for _ in range(10))
