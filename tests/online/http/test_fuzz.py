"""Whatever is sent: the run receives only what was validly requested, and the service still answers."""

import json
import math
import socket
from urllib.parse import quote, unquote, unquote_plus

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from onion.http.page_files import read_page
from onion.online.http import Limits
from onion.online.http.app import PAGE
from tests.online.http.calls import call, dialled, rest
from tests.online.http.memory_run import TOKEN, serving

BODY = b'{"learning_rate": 0.5}'
HEAD = f"HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
VALID = [
    b"POST /pause " + HEAD + b"\r\n",
    b"PATCH /settings " + HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    b"POST /samples?producer=p&cursor=m " + HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[5]\r\n0\r\n\r\n",
]
WITHOUT = [request.replace(TOKEN.encode(), b"x" * 16) for request in VALID]
COMMANDS = {"pause", "resume", "save", "test", "step", "stop"}
OTHERS = {"settings", "samples", "predict", "events", "status", "onion", "metrics", "replay"}
THERE = {*COMMANDS, *OTHERS, *read_page(PAGE)}
"""What a path may name. Hypothesis also draws words of loaded modules, such as these."""
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def called():
    """A service with the default limits of time."""
    with serving() as (run, service):
        yield run, service


@pytest.fixture(scope="module")
def fuzzed():
    """A service whose connections end soon."""
    with serving(limits=Limits(seconds=5.0, keep_alive=0.2)) as (run, service):
        yield run, service
        assert call(service, "GET", "/status")[0] == 200


def sent(service, raw):
    """Send bytes and the end of the stream; return the answer."""
    with dialled(service) as connection:
        try:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # it was closed before
            pass
        return rest(connection)


@given(st.lists(st.binary(max_size=50) | st.sampled_from([b"\r\n", b" HTTP/1.1", b"POST /pause", b"Host: x"])))
@quick
def test_random_bytes(fuzzed, parts):
    run, service = fuzzed
    answer = sent(service, b"".join(parts))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert run.heard == run.samples == []


@given(st.sampled_from(VALID), st.floats(0, 1, exclude_max=True))
@quick
def test_half_requests(fuzzed, request_, share):
    run, service = fuzzed
    assert sent(service, request_[: int(share * len(request_))]) == b""
    assert run.heard == run.samples == []


@given(st.sampled_from(WITHOUT), st.data())
@quick
def test_damaged_requests_without_a_token(fuzzed, request_, data):
    run, service = fuzzed
    damaged = bytearray(request_)
    for _ in range(data.draw(st.integers(0, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    answer = sent(service, bytes(damaged))
    assert answer[:9] in (b"", b"HTTP/1.1 ")
    assert run.heard == run.samples == []


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40).filter(lambda text: text.strip() != TOKEN)
)
@example("")
@example(TOKEN + "x")
@example(TOKEN.upper())
@quick
def test_wrong_tokens(called, token):
    run, service = called
    authorization = f"Bearer {token}".encode("latin-1")
    assert call(service, "POST", "/pause", token=None, headers={"Authorization": authorization})[0] in (400, 401)
    assert run.heard == []


numbers = st.integers() | st.floats() | st.sampled_from(["9" * 5000, "1e999", "-0", "0x10", "1_0", "٣", "", "1.0"])


@given(numbers.map(str) | st.text(max_size=10))
@quick
def test_any_number_of_steps(called, n):
    run, service = called
    status, _, answer = call(service, "POST", f"/step?n={quote(n)}")
    assert status in (200, 400)
    heard = [arguments["n"] for _, arguments in run.heard]
    run.heard.clear()
    if status == 400:
        assert answer["error"]
        assert heard == []
    else:
        assert heard == [round(float(unquote_plus(quote(n)).replace("_", "")))]
        assert 1 <= heard[0] <= 10**9


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
)


@given(st.dictionaries(st.just("learning_rate") | st.text(max_size=10), JSON, max_size=2))
@example({"learning_rate": 0.5})
@example({"learning_rate": True})
@example({"learning_rate": 10**400})
@quick
def test_any_settings(called, values):
    run, service = called
    run.heard.clear()
    status, _, _ = call(service, "PATCH", "/settings", values)
    assert status in (200, 400)
    rate = values.get("learning_rate")
    fits = len(values) == 1 and isinstance(rate, int | float) and 0 <= rate <= 1
    assert run.heard == ([("set", values)] if fits else [])
    run.heard.clear()


@given(st.lists(JSON, min_size=1, max_size=5))
@quick
def test_any_samples(called, values):
    run, service = called
    status, _, answer = call(service, "POST", "/samples", "\n".join(map(json.dumps, values)))
    taken = [sample for _, sample in run.samples]
    run.samples.clear()
    if status == 200:
        assert json.dumps(taken) == json.dumps(values)
        assert all(map(plain, values))
    else:
        assert status == 400
        assert answer["error"].startswith("Line ")
        assert taken == []
        assert not all(map(plain, values))


def plain(value):
    """Return whether the service accepts a value as JSON."""
    if isinstance(value, dict):
        return all(map(plain, value)) and all(map(plain, value.values()))
    if isinstance(value, list):
        return all(map(plain, value))
    if isinstance(value, str):
        return value.encode(errors="ignore").decode() == value
    return math.isfinite(value) if isinstance(value, float) else value is None or -(2**63) <= value < 2**63


@given(st.text(max_size=30))
@example("../../../etc/passwd")
@example("..%2f..%2fetc%2fpasswd")
@quick
def test_any_path(called, path):
    assume(unquote(path) not in THERE)
    run, service = called
    for method in ("GET", "POST"):
        for raw in (f"/{quote(path, safe='/.%')}", f"/static/{quote(path)}", f"/rings/{quote(path)}/enable"):
            status, _, _ = call(service, method, raw)
            assert status in (400, 404, 405) or (method, raw) == ("GET", "/")
    assert run.heard == []
