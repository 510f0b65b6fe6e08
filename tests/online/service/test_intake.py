"""Samples and predictions."""

import threading

import pytest

from onion.online.service import Limits
from onion.online.source import Full
from tests.online.service.calls import call
from tests.online.service.memory_desk import serving
from tests.patience import PATIENCE


def test_samples(served):
    desk, service = served
    body = '{"text": "好"}\n\n  [1, 2.5, null]\r\n"last"'
    assert call(service, "POST", "/samples", body.encode())[2] == {"taken": 3}
    assert desk.samples == [("http", {"text": "好"}), ("http", [1, 2.5, None]), ("http", "last")]


def test_a_mark_keeps_samples_from_being_taken_twice(served):
    desk, service = served
    for taken in (1, 0):
        assert call(service, "POST", "/samples?producer=p&mark=m", "5")[2] == {"taken": taken}
    assert desk.samples == [("p", 5)]


@pytest.mark.parametrize("query", ["mark=m", "producer=", "producer=" + "p" * 201, "path=/tmp/x"])
def test_who_brings_samples_is_named_well(shared, query):
    desk, service = shared
    assert call(service, "POST", f"/samples?{query}", "5")[0] == 400
    assert desk.samples == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'1\n{"a": }\n3', "Line 2: Expecting value at character 7; nothing was taken."),
        (b"1\n\n\nInfinity", "Line 4: Infinity is no JSON"),
        (b"1\n" + b"7" * 5000, "Line 2: the number 77777777777777777777... does not fit"),
        (b"[" * 100_000, "Line 1: more than 64 lists"),
        (rb'"\ud800"', "Line 1: a string has half a surrogate pair"),
        (b"1\n\xff", "Line 2: byte 1 is not UTF-8"),
        (b"\n \n", "The body has no line"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_taken(shared, body, words):
    desk, service = shared
    status, _, answer = call(service, "POST", "/samples", body)
    assert status == 400
    assert answer["error"].startswith(words)
    assert desk.samples == []


def test_a_full_stream_says_when_to_come_again(served):
    desk, service = served

    def full():
        raise Full(2.5)

    desk.on_put = full
    status, headers, answer = call(service, "POST", "/samples", "1")
    assert status == 429
    assert headers["retry-after"] == "3"
    assert "no room" in answer["error"]


def test_bodies_have_limits():
    with serving(limits=Limits(body=100, samples_body=1000, sample=300, samples=20)) as (desk, service):
        for method, path, length in (
            ("PATCH", "/settings", 101),
            ("POST", "/predict", 101),
            ("POST", "/samples", 1001),
        ):
            whole = b"1" * length
            assert call(service, method, path, whole)[0] == 413
            assert call(service, method, path, iter([whole[:50], whole[50:]]))[0] == 413  # chunked: no length is said
        assert call(service, "POST", "/samples", b'"' + b"x" * 300 + b'"')[0] == 400
        assert call(service, "POST", "/samples", b"1\n" * 21)[0] == 413
        assert desk.samples == desk.heard == []
        assert call(service, "POST", "/samples", b'"' + b"x" * 298 + b'"')[0] == 200
        assert call(service, "POST", "/samples", b"1\n" * 20)[2] == {"taken": 20}


def test_a_packed_body_is_refused(shared):
    desk, service = shared
    assert call(service, "POST", "/samples", b"1", headers={"Content-Encoding": "gzip"})[0] == 415
    assert desk.samples == []


def test_only_so_many_uploads_at_once():
    with serving(limits=Limits(uploads=1)) as (desk, service):
        inside, go_on = threading.Event(), threading.Event()

        def hold():
            inside.set()
            assert go_on.wait(PATIENCE)

        desk.on_put = hold
        first = threading.Thread(target=call, args=(service, "POST", "/samples", "1"))
        first.start()
        assert inside.wait(PATIENCE)
        status, headers, _ = call(service, "POST", "/samples", "2")
        assert (status, headers["retry-after"]) == (503, "1")
        assert call(service, "POST", "/pause")[0] == 200  # other calls go on
        go_on.set()
        first.join(PATIENCE)
        assert desk.samples == [("http", 1)]


def test_predict(shared):
    service = shared[1]
    assert call(service, "POST", "/predict", {"inputs": ["a", "bcd"]})[2] == {"predictions": [1, 3], "step": 10}
    assert call(service, "POST", "/predict", {"inputs": ["bad"]})[0] == 400
    assert call(service, "POST", "/predict", ["a"])[0] == 400
    assert call(service, "POST", "/predict", {"input": "a"})[0] == 400
