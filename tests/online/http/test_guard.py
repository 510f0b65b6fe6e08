"""Guard: malformed and ambiguous requests are refused, and nothing behind them on the connection is read."""

import re
from urllib.parse import quote

import pytest

from tests.online.http.calls import call, dialled, rest
from tests.online.http.memory_run import TOKEN

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
