"""The calls that steer a run."""

import threading

import pytest

from onion.online.desk import Refused
from tests.online.service.calls import call
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
        ("POST", "/stop", None, "stop", {"why": "asked over the network"}),
        ("POST", "/stop?why=seen%20enough", None, "stop", {"why": "seen enough"}),
        ("PATCH", "/settings", {"learning_rate": 0.25}, "set", {"learning_rate": 0.25}),
        ("POST", "/rings/replay/enable", None, "enable", {"ring": "replay"}),
        ("POST", "/rings/replay/disable", None, "disable", {"ring": "replay"}),
    ],
)
def test_a_command_is_answered_with_its_step(served, method, path, body, command, arguments):
    desk, service = served
    status, _, answer = call(service, method, path, body)
    assert status == 200
    assert answer == {"number": 1, "command": command, "step": 10, "result": {"done": True}}
    assert desk.heard == [(command, arguments)]


def test_a_command_that_fails_says_so(served):
    desk, service = served
    desk.failing["save"] = "the disk is full"
    status, _, answer = call(service, "POST", "/save")
    assert status == 500
    assert answer["error"] == "the disk is full"
    assert answer["step"] == 10


def test_a_command_that_takes_long_stays_in_line_and_is_carried_out_once(served):
    desk, service = served
    desk.open.clear()
    for _ in range(2):
        status, _, answer = call(service, "POST", "/save?timeout=0", headers={"Idempotency-Key": "k 1"})
        assert (status, answer) == (202, {"queued": True})
    desk.open.set()
    assert call(service, "POST", "/save", headers={"Idempotency-Key": "k 1"})[2]["number"] == 1
    assert desk.heard == [("save", {})]
    assert call(service, "POST", "/save", headers={"Idempotency-Key": "k 2"})[2]["number"] == 2


def test_two_wait_for_one_answer_and_the_one_who_leaves_does_not_take_it_along(served):
    desk, service = served
    desk.open.clear()
    key = {"Idempotency-Key": "shared"}
    answers = []
    patient = threading.Thread(target=lambda: answers.append(call(service, "POST", "/save", headers=key)))
    patient.start()
    assert call(service, "POST", "/save?timeout=0.01", headers=key)[0] == 202
    desk.open.set()
    patient.join(PATIENCE)
    assert answers[0][0] == 200


def test_a_run_that_ends_refuses_what_waits(served):
    desk, service = served
    future = desk.ask("save", {}, "lost")
    future.result(PATIENCE)
    for outcome in (Refused("the run has ended.", 409), None):
        desk.open.clear()
        waiting = desk.ask("save", {}, str(outcome))
        waiting.cancel() if outcome is None else waiting.set_exception(outcome)
        status, _, answer = call(service, "POST", "/save", headers={"Idempotency-Key": str(outcome)})
        assert status == 409
        assert "ended" in answer["error"]


def test_what_the_desk_refuses_is_refused_with_its_words(shared):
    desk, service = shared
    status, _, answer = call(service, "POST", "/rings/nothing/enable")
    assert (status, answer) == (404, {"error": "'nothing' is no ring."})
    assert call(service, "PATCH", "/settings", {"learning_rate": 2})[0] == 400
    assert desk.heard == []


@pytest.mark.parametrize("key", ["k" * 201, "a\tb", "caf\xe9", ""])
def test_a_key_is_short_and_printable(shared, key):
    desk, service = shared
    status, _, answer = call(service, "POST", "/pause", headers={"Idempotency-Key": key.encode("latin-1")})
    assert status == 400
    assert answer["error"].lower().startswith("idempotency-key: ")
    assert desk.heard == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "Expecting value"),
        ("[]", "no JSON object"),
        ("{}", "names no setting"),
        ('{"learning_rate": NaN}', "NaN is no JSON"),
        ('{"learning_rate": 1e999}', "64 bits"),
        ('{"learning_rate": ' + "9" * 5000 + "}", "64 bits"),
        ('{"learning_rate": 0.1, "learning_rate": 0.2}', "twice"),
        ('{"learning_rate": ' + "[" * 20000 + "]" * 20000 + "}", "64 lists"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_settings_are_plain_json(shared, body, words):
    desk, service = shared
    status, _, answer = call(service, "PATCH", "/settings", body)
    assert status == 400
    assert words in answer["error"]
    assert desk.heard == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/step?n=0", "n: "),
        ("/step?n=-1", "n: "),
        ("/step?n=1.5", "n: "),
        ("/step?n=1000000001", "n: "),
        ("/step?n=" + "9" * 6000, "n: "),
        ("/step?m=5", "'m' is no parameter"),
        ("/pause?n=5", "'n' is no parameter"),
        ("/pause?key=k", "'key' is no parameter"),
        ("/save?path=/etc", "'path' is no parameter"),
        ("/pause?timeout=61", "timeout: "),
        ("/pause?timeout=-1", "timeout: "),
        ("/pause?timeout=nan", "timeout: "),
        ("/pause?timeout=1e999", "timeout: "),
        ("/stop?why=" + "x" * 201, "why: "),
        ("/stop?why=", "why: "),
    ],
)
def test_a_wrong_parameter_is_refused(shared, path, words):
    desk, service = shared
    status, _, answer = call(service, "POST", path)
    assert status == 400
    assert answer["error"].startswith(words)
    assert desk.heard == []
