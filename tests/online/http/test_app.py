"""The application: the guard before it, what all calls have in common, status, metrics, the page's files, limits."""

import asyncio
import json
import math
import re
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from onion.errors import OnionError
from onion.http.page_files import page_routes, read_page
from onion.http.refused import Refused
from onion.online.http import Limits
from tests.online.http.calls import call, dialled, rest
from tests.online.http.memory_run import TOKEN, serving


@pytest.mark.parametrize(
    ("status", "method", "path"),
    [
        *((404, "GET", path) for path in ("/nothing", "/docs", "/openapi.json", "//etc/passwd")),
        *((404, "GET", path) for path in ("/static/../app.py", "/static/%2e%2e/app.py")),
        *((404, "POST", path) for path in ("/pause/", "/rings/../../etc/passwd/enable")),
        (405, "GET", "/pause"),
        (405, "DELETE", "/settings"),
    ],
)
def test_what_does_not_exist(shared, method, path, status):
    got, _, answer = call(shared[1], method, path)
    assert got == status
    assert list(answer) == ["error"]


def test_an_error_in_the_run_is_answered_and_logged(served, caplog):
    run, service = served
    run.on_put = lambda: 1 / 0
    status, _, answer = call(service, "POST", "/samples", "1")
    assert (status, answer) == (500, {"error": "The service failed: ZeroDivisionError; see its log."})
    assert call(service, "GET", "/status")[0] == 200
    assert [record.name for record in caplog.records] == ["onion"]
    assert caplog.records[0].exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize("path", ["/status", "/onion", "/metrics", "/events", "/nothing"])
def test_every_call_about_the_run_requires_the_token(shared, path):
    service = shared[1]
    for token in (None, TOKEN + "x", TOKEN[:-1], ""):
        status, headers, answer = call(service, "GET", path, token=token)
        assert status == 401
        assert headers["www-authenticate"] == "Bearer"
        assert "Bearer" in answer["error"]


def test_without_the_token_nothing_is_controlled(shared):
    run, service = shared
    for path in ("/pause", "/samples", "/predict", "/stop"):
        assert call(service, "POST", path, "1", token=None)[0] == 401
    assert call(service, "PATCH", "/settings", {"learning_rate": 0.2}, token="wrong" * 5)[0] == 401
    assert run.heard == run.samples == []


def test_every_answer_restricts_browsers(shared):
    for path, token in (("/status", TOKEN), ("/status", None), ("/nothing", TOKEN), ("/", None)):
        headers = call(shared[1], "GET", path, token=token)[1]
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")


def test_the_page_of_another_site_gets_nothing(shared):
    run, service = shared
    assert call(service, "POST", "/pause", headers={"Origin": "https://evil.example"})[0] == 403
    assert call(service, "GET", "/status", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert run.heard == []
    assert call(service, "GET", "/status", headers={"Origin": service.url})[0] == 200


def test_long_headers_are_refused():
    with serving(limits=Limits(header=2000)) as (_, service):
        assert call(service, "GET", "/status", headers={"X": "x" * 1500})[0] == 200
        assert call(service, "GET", "/status", headers={"X": "x" * 2100})[0] in (400, 431)


def test_status_and_drawing_are_those_of_the_run(shared):
    run, service = shared
    assert call(service, "GET", "/status")[2] == run.status()
    assert call(service, "GET", "/onion")[2] == run.onion()


def test_values_that_are_not_finite_are_null(served):
    run, service = served
    run.loss, run.metrics = math.nan, {"a": math.inf}
    body = call(service, "GET", "/status")[2]
    assert (body["loss"], body["metrics"]) == (None, {"a": None})


def test_metrics_are_prometheus_text(served):
    run, service = served
    run.metrics = {'hostile"} 1\nonion_step 99': 0.5, "nothing": None}
    call(service, "GET", "/etc/passwd")
    call(service, "GET", "/rings/x")
    call(service, "POST", "/step?n=3")
    for method in ("DELETE", "BREW", "WHEN"):
        call(service, method, "/nothing")
    text = call(service, "GET", "/metrics")[2].decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    expected = {
        ("onion_step",): 10,
        ("onion_pass",): 1,
        ("onion_loss",): 0.5,
        ("onion_queue_samples",): 7,
        ("onion_rejected_samples",): 3,
        ("onion_commands_total",): 1,
        ("onion_metric", 'hostile"} 1\nonion_step 99'): 0.5,
        ("onion_log_value", "learning_rate"): 0.1,
        ("onion_http_requests_total", "POST", "/step", "200"): 1,
        ("onion_http_requests_total", "GET", "other", "404"): 2,
        ("onion_http_requests_total", "other", "other", "404"): 3,  # methods that do not exist are counted as one
    }
    assert found.items() >= expected.items()
    assert ("onion_metric", "nothing") not in found
    assert "BREW" not in text
    run.loss = None
    assert b"onion_loss" not in call(service, "GET", "/metrics")[2]


def test_answers_are_json_that_every_reader_accepts(served):
    run, service = served
    run.metrics = {"\ud800": 1.0}  # half a pair, in the name of a metric
    assert json.dumps(call(service, "GET", "/status")[2]["metrics"]) == r'{"\ud800": 1.0}'


@pytest.mark.parametrize(
    "wrong", [{"body": 0}, {"connections": 1.5}, {"seconds": -1}, {"keep_alive": float("inf")}, {"samples": True}]
)
def test_a_limit_must_be_a_number_above_0(wrong):
    with pytest.raises(OnionError, match=next(iter(wrong))):
        Limits(**wrong)
    assert Limits(seconds=0.1, keep_alive=0.5).seconds == 0.1


@pytest.fixture
def page(tmp_path):
    folder = tmp_path / "page"
    (folder / "vendor").mkdir(parents=True)
    (folder / "index.html").write_text("<p>页")
    (folder / "vendor" / "chart.js").write_text("1")
    (folder / "vendor" / "LICENSE").write_text("MIT")
    (tmp_path / "secret.js").write_text("2")
    return folder


def ask(folder, path, **names):
    endpoint = next(route.endpoint for route in page_routes(folder).routes if route.path == path)
    return asyncio.run(endpoint(**names))


def test_the_page_and_its_files(page):
    index = ask(page, "/")
    assert (index.body.decode(), index.media_type) == ("<p>页", "text/html; charset=utf-8")
    script = ask(page, "/static/{name:path}", name="vendor/chart.js")
    assert (script.body, script.media_type) == (b"1", "text/javascript; charset=utf-8")


@pytest.mark.parametrize(
    "name", ["", "../secret.js", "vendor", "vendor/LICENSE", "vendor/../../secret.js", "/etc/passwd"]
)
def test_no_other_file_is_served(page, name):
    with pytest.raises(Refused) as refused:
        ask(page, "/static/{name:path}", name=name)
    assert refused.value.status == 404


def test_a_missing_page_is_404(tmp_path):
    assert read_page(tmp_path / "nothing") == {}
    with pytest.raises(Refused):
        ask(tmp_path / "nothing", "/")


def test_files_are_read_once(page):
    router = page_routes(page)
    (page / "index.html").write_text("another")
    endpoint = next(route.endpoint for route in router.routes if route.path == "/")
    assert asyncio.run(endpoint()).body.decode() == "<p>页"


# -- the guard: malformed and ambiguous requests -----------------------------------------------------------------------

HOST = b"Host: localhost\r\n"
FRIEND = HOST + f"Authorization: Bearer {TOKEN}\r\n".encode()
CHUNKED = b"Transfer-Encoding: chunked\r\n"
HIDDEN = b"POST /pause HTTP/1.1\r\n" + FRIEND + b"\r\n"
NONE = b"0\r\n\r\n"


def stop(headers=b"", body=b"", *, target=b"/stop", version=b"HTTP/1.1", friend=FRIEND):
    """Return the bytes of a request that would stop the run."""
    return b"POST " + target + b" " + version + b"\r\n" + friend + headers + b"\r\n" + body


AMBIGUOUS = {
    "length and chunks": stop(CHUNKED + b"Content-Length: 5\r\n", NONE),
    "chunks and length": stop(b"content-length: 0\r\n" + CHUNKED, NONE),
    "a request in the body": stop(CHUNKED + b"Content-Length: 9999\r\n", NONE + HIDDEN),
    "chunks in HTTP/1.0": stop(CHUNKED, NONE, version=b"HTTP/1.0"),
    "two codings": stop(CHUNKED + CHUNKED, NONE),
    "a list of codings": stop(b"Transfer-Encoding: gzip, chunked\r\n", NONE),
    "another coding": stop(b"Transfer-Encoding: xchunked\r\n", NONE),
    "two lengths": stop(b"Content-Length: 0\r\nContent-Length: 5\r\n", b"12345"),
    "a list of lengths": stop(b"Content-Length: 0, 5\r\n", b"12345"),
    "a length with a sign": stop(b"Content-Length: +5\r\n", b"12345"),
    "a negative length": stop(b"Content-Length: -5\r\n"),
    "a length in hex": stop(b"Content-Length: 0x5\r\n", b"12345"),
    "a length with an underscore": stop(b"Content-Length: 1_0\r\n", b"1234567890"),
    "a very large length": stop(b"Content-Length: " + b"9" * 30 + b"\r\n"),
    "two hosts": stop(HOST),
    "no host": stop(friend=FRIEND.removeprefix(HOST)),
    "a folded line at the start": stop(friend=b" folded: x\r\n" + FRIEND),
    "a space before the colon": stop(b"Content-Length : 5\r\n", b"12345"),
    "a header without a name": stop(b": x\r\n"),
    "a header without a colon": stop(b"x\r\n"),
    "a NUL in a header": stop(b"x: a\x00b\r\n"),
    "a carriage return in a header": stop(b"x: a\rb\r\n"),
    "two keys": stop(b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n"),
    "two encodings": stop(b"Content-Encoding: identity\r\nContent-Encoding: gzip\r\n"),
    "no version": b"POST /stop\r\n" + FRIEND + b"\r\n",
    "HTTP/0.9": b"GET /status\r\n\r\n",
    "HTTP/2.0": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/9.9": stop(version=b"HTTP/9.9"),
    "a version in small letters": stop(version=b"http/1.1"),
    "two spaces": stop(target=b" /stop"),
    "a tab": stop(target=b"\t/stop"),
    "a space in the path": stop(target=b"/st op"),
    "bytes that are no ASCII": stop(target="/stöp".encode()),
    "half a code": stop(target=b"/stop?why=%4"),
    "no code": stop(target=b"/stop?why=%zz"),
    "a percent sign": stop(target=b"/stop?why=100%"),
    "no UTF-8": stop(target=b"/stop?why=%ff"),
    "an overlong slash": stop(target=b"/rings/..%c0%af..%c0%afstop/enable"),
    "half a surrogate pair": stop(target=b"/stop?why=%ed%a0%80"),
    "an empty line first": b"\r\n" + stop(),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_they_are_refused_and_the_connection_is_closed(shared, name):
    run, service = shared
    with dialled(service) as connection:
        connection.sendall(AMBIGUOUS[name] + HIDDEN)
        answer = rest(connection)
    assert re.findall(rb"HTTP/1\.1 (\d{3}) ", answer) == [b"400"]
    assert run.heard == run.samples == []


@pytest.mark.parametrize("size", [b"-1", b"+1", b"0x1", b"1_0", b"", b" 1", b"1 1", b"g", b"F" * 21, b"\xb2"])
def test_a_chunk_of_no_size_ends_the_connection(shared, size):
    run, service = shared
    with dialled(service) as connection:
        connection.sendall(stop(CHUNKED, size + b"\r\n1\r\n" + NONE, target=b"/samples") + HIDDEN)
        answer = rest(connection)
    assert re.findall(rb"HTTP/1\.1 (\d{3}) ", answer) in ([], [b"400"])
    assert run.heard == run.samples == []


@pytest.mark.parametrize("text", ["a b+c", "100 %", "Grüße, 名前", "a/b?c&d=e"])
def test_encoded_text_is_accepted(served, text):
    run, service = served
    assert call(service, "POST", f"/stop?why={quote(text)}")[0] == 200
    assert run.heard == [("stop", {"why": text})]


@pytest.mark.parametrize(
    "path",
    [
        "/step?n=1&n=2",
        "/step?n=1&n=1",
        "/stop?why=a&why=b",
        "/samples?cursor=1&cursor=2",
        "/pause?timeout=1&timeout=2",
    ],
)
def test_a_repeated_parameter_is_refused(shared, path):
    run, service = shared
    name = path.partition("?")[2].partition("=")[0]
    status, _, answer = call(service, "POST", path, "[1]")
    assert (status, answer) == (400, {"error": f"The parameter {name!r} occurs 2 times; give it once."})
    assert run.heard == run.samples == []


def test_an_address_longer_than_the_headers_is_refused(shared):
    _, service = shared
    assert call(service, "GET", "/" + "a" * 20_000)[0] in (400, 431)
