"""The service as an attacker sees it, and requests that no service should heed.

Each maker draws one request: random bytes, or what a clever enemy would try.
"""

from __future__ import annotations

import json
import random
import re
import select
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import attrs

ATTACKER_TIMEOUT, FRIEND_TIMEOUT = 0.5, 10.0
"""Seconds that an attacker waits for an answer, as many requests are incomplete; and that a legitimate client does."""

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@attrs.frozen
class Target:
    """A service on this machine, and its token."""

    port: int
    token: str = attrs.field(repr=False)

    def connect(self, timeout: float = ATTACKER_TIMEOUT) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def request(self, method: str, path: str, body: bytes = b"", *headers: str, token: str | None = None) -> bytes:
        """Return the bytes of a request that has a token: the right one, or another."""
        lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"authorization: Bearer {token or self.token}"]
        lines += [f"content-length: {len(body)}", "connection: close", *headers]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def ask(self, request: bytes, timeout: float = ATTACKER_TIMEOUT) -> tuple[str, bytes]:
        """Send bytes; return the status of the answer, or ``closed``, or ``silent``, and the body."""
        return self._answer(lambda connection: connection.sendall(request), timeout)

    def provoke(self, pieces: Iterable[bytes]) -> str:
        """Send pieces as long as the service listens; return the status of the answer as ``ask`` does.

        There need not be a last piece: sending ends when an answer comes, or none is to be expected any more.
        """

        def send(connection: socket.socket) -> None:
            for piece in pieces:
                connection.sendall(piece)
                if _is_heard(connection, 0):
                    break
            _is_heard(connection, ATTACKER_TIMEOUT)
            connection.shutdown(socket.SHUT_WR)

        return self._answer(send, FRIEND_TIMEOUT)[0]

    def _answer(self, send: Callable[[socket.socket], None], timeout: float) -> tuple[str, bytes]:
        answer = b""
        try:
            with self.connect(timeout) as connection:
                with suppress(OSError):  # a server may answer, and close, before it has heard all
                    send(connection)
                while chunk := connection.recv(65536):
                    answer += chunk
        except TimeoutError:
            return "silent", b""
        except OSError:
            pass
        found = STATUS.match(answer)
        return (found[1].decode(), answer.partition(b"\r\n\r\n")[2]) if found else ("closed", b"")

    def call(self, method: str, path: str, value: Any = None, *headers: str) -> Any:
        """Call as a friend; return the JSON of the answer, or None if there is none, or it is a refusal."""
        body = b"" if value is None else json.dumps(value).encode()
        status, answer = self.ask(self.request(method, path, body, *headers), FRIEND_TIMEOUT)
        return json.loads(answer) if status == "200" else None


def _is_heard(connection: socket.socket, seconds: float) -> bool:
    return bool(select.select([connection], [], [], seconds)[0])


Maker: TypeAlias = Callable[[random.Random, Target], bytes]

KEY = "idempotency-key: the-only-one"
"""Of the friend's command."""

RATE = "parameter_updater.learning_rate"

GIVEN = json.dumps({RATE: 0.02}).encode()
"""The one command that a friend gives."""

STEERING = (
    ("POST", "/stop", b""),
    ("POST", "/pause", b""),
    ("POST", "/step?n=5", b""),
    ("POST", "/save", b""),
    ("POST", "/test", b""),
    ("PATCH", "/settings", b'{"learning_rate": 1.0}'),
    ("POST", "/rings/parameter_updater/disable", b""),
    ("POST", "/samples", b'{"id": 1}'),
)
"""What would change a run, if it were heeded."""

LARGE = "9" * 30
NUMBERS = (
    "1e999",
    "-1e999",
    LARGE,
    f"-{LARGE}",
    "9" * 50_000,
    "NaN",
    "Infinity",
    "-1",
    "0",
    "11",
    "1e30",
    '"1"',
    "true",
)
TRICKS = (
    "/../../../../etc/passwd",
    "/static/../../../../../etc/passwd",
    "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/static/..%2f..%2f..%2fetc%2fpasswd",
    *("/static/..%5c..%5cetc%5cpasswd", "/static//etc/passwd", "/static/%00", "/static/page/../../limits.py"),
    *("//etc/passwd", "/rings/../../stop", "/rings/..%2f..%2fstop/enable", "/rings/%00/disable", "/samples/../stop"),
    *("/stop/", "/STOP", "/stop%00", "http://evil.example/stop", "/" + "a" * 8000),
)

FRAMES = (
    ("content-length: 5", "transfer-encoding: chunked"),
    ("transfer-encoding: chunked", "content-length: 0"),
    ("transfer-encoding: chunked", "transfer-encoding: chunked"),
    *((f"transfer-encoding{value}",) for value in (": gzip, chunked", ": xchunked", " : chunked")),
    *((f"content-length: {length}",) for length in ("0, 9", "+0", "0x0", LARGE)),
    *(("content-length: 0", more) for more in ("content-length: 9", "host: evil.example", "x: a\0b", "x: a\rb", ": x")),
    ("content-length: 0", KEY, "idempotency-key: another"),
)
"""Headers that leave open where their request ends, or what it asks."""

SIZES = ("-1", "+1", "0x1", "1_0", "", " 1", "g", "F" * 21, "9" * 5000)
"""Of chunks."""

VERSIONS = ("", " HTTP/0.9", " HTTP/2.0", " HTTP/9.9", " http/1.1", " HTTP/1.1 HTTP/1.1", "  HTTP/1.1", "\tHTTP/1.1")

ADDRESSES = (
    *(f"/stop?why={why}" for why in ("%zz", "100%", "%ff", "%ed%a0%80", "a&why=b")),
    *("/step?n=1&n=2", "/step?n=1&n=1", "/step?n=1&m=2", "/pause?timeout=1&timeout=2"),
    *("/rings/..%c0%af..%c0%afstop/enable", "/st\xf6p", "/stop?" + "a=b&" * 5000, "/stop?" + "%41" * 6000),
)

BYTES_BETWEEN_CHECKS = 2**20
"""Bytes that are sent before the next check for an answer."""


def noise(draw: random.Random, target: Target) -> bytes:
    """Random bytes, at times behind the beginning of a request."""
    begin = draw.choice([b"", b"", b"GET / HTTP/1.1\r\n", b"POST /stop HTTP/1.1\r\nhost: localhost\r\n"])
    return begin + draw.randbytes(draw.choice([1, 10, 100, 1000, 20_000]))


def wrong_token(draw: random.Random, target: Target) -> bytes:
    """A command with a token that is not quite the right one, or with two of them."""
    right = target.token
    token = draw.choice([right[:-1], right + "x", right.swapcase(), "x", "\xff" * 20, right[::-1], f"{right},{right}"])
    more = draw.choice([(), (f"authorization: Bearer {right}",), (KEY,)])
    return target.request(*draw.choice(STEERING), *more, token=token)


def other_site(draw: random.Random, target: Target) -> bytes:
    """A command from the page of another site, by a friend's browser."""
    return target.request(*draw.choice(STEERING), draw.choice(["origin: http://evil.example", "origin: null"]))


def huge(draw: random.Random, target: Target) -> bytes:
    """A number that is none, or too large, wherever one is expected."""
    number = draw.choice(NUMBERS)
    word = number[:40].strip('"') if number != '"1"' else "one"
    return draw.choice(
        [
            target.request("PATCH", "/settings", f'{{"{RATE}": {number}}}'.encode()),
            target.request("POST", f"/step?n={word if word != '11' else '-11'}"),
            target.request("POST", f"/pause?timeout={LARGE}"),
            b"POST /stop HTTP/1.1\r\nhost: localhost\r\ncontent-length: " + LARGE.encode() + b"\r\n\r\n",
            target.request("POST", "/stop", b"", f"content-length: {draw.choice(['5', '-5', LARGE])}"),
            target.request("POST", "/samples", b"FFFFFFFFFFFFFFFFFF\r\n", "transfer-encoding: chunked"),
            target.request("POST", "/stop", b"", "x: " + "y" * 20_000),
            target.request("POST", "/stop", b"", *["x: y"] * 20_000),
            target.request("PATCH", "/settings", b" " * 100_000),
        ]
    )


def deep(draw: random.Random, target: Target) -> bytes:
    """JSON in JSON in JSON, or what is no JSON."""
    depth = draw.choice([65, 1000, 30_000])
    value = draw.choice([b"[" * depth, b'{"a":' * depth, b"[" * depth + b"]" * depth, b'{"a":1,"a":2}', b'"\\ud800"'])
    method, path = draw.choice([("PATCH", "/settings"), ("POST", "/samples"), ("POST", "/predict")])
    return target.request(method, path, draw.choice([value, value + b"\xff", b"\x00" + value]))


def replayed(draw: random.Random, target: Target) -> bytes:
    """The friend's command again, which has the first one's answer; or another one under its key."""
    return target.request(*draw.choice([("PATCH", "/settings", GIVEN), *STEERING[:6]]), KEY)


def trick(draw: random.Random, target: Target) -> bytes:
    """A path that leads out of where it should."""
    return target.request(draw.choice(["GET", "POST", "DELETE", "PUT"]), draw.choice(TRICKS))


def ambiguous(draw: random.Random, target: Target) -> bytes:
    """A command that two readers could take for two; another one is in what may be its body."""
    lines = ["POST /stop HTTP/1.1", "host: localhost", f"authorization: Bearer {target.token}", *draw.choice(FRAMES)]
    hidden = draw.choice([target.request("POST", "/pause"), target.request("POST", "/samples", b'{"id": 1}')])
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + b"0\r\n\r\n" + hidden


def misshapen(draw: random.Random, target: Target) -> bytes:
    """A version, a chunk or an address that is none, of a command with the right token."""
    friend = f"host: localhost\r\nauthorization: Bearer {target.token}\r\n"
    chunk = f"transfer-encoding: chunked\r\n\r\n{draw.choice(SIZES)}\r\n1\r\n0\r\n\r\n"
    request = draw.choice(
        [
            f"POST /stop{draw.choice(VERSIONS)}\r\n{friend}\r\n",
            f"POST /samples HTTP/1.1\r\n{friend}{chunk}",
            f"POST {draw.choice(ADDRESSES)} HTTP/1.1\r\n{friend}content-length: 0\r\n\r\n",
        ]
    )
    return request.encode("latin-1")


def inputs(draw: random.Random, target: Target) -> bytes:
    """Inputs with the right token that nothing can be predicted for."""
    wrong: list[Any] = [1, [[1.0]], ["a"], [None, {}]]
    values: list[Any] = [[], 1, "x", None, {}, *({"inputs": each} for each in wrong)]
    return target.request("POST", "/predict", json.dumps(draw.choice(values)).encode())


def never_finishes(draw: random.Random, target: Target) -> Iterator[bytes]:
    """A body without an end, from a caller with a wrong token: in chunks of a few bytes, or of a length for years."""
    body, piece = draw.choice(
        [
            ("transfer-encoding: chunked", b"1\r\nx\r\n"),
            ("transfer-encoding: chunked", b"5;a=b\r\nxxxxx\r\n"),
            ("content-length: 999999999999", b"x"),
        ]
    )
    yield f"POST /samples HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer x\r\n{body}\r\n\r\n".encode()
    while True:
        yield piece * (BYTES_BETWEEN_CHECKS // len(piece))


def half(draw: random.Random, target: Target) -> bytes:
    """The beginning of a good command."""
    request = target.request(*draw.choice(STEERING), "x: y")
    return request[: draw.randrange(1, len(request) - 1)]


def bad_samples(draw: random.Random, target: Target) -> bytes:
    """Samples with the right token, none of which can be used."""
    values: list[Any] = [None, [], 7, "x" * draw.randint(0, 2000), {"ID": 1}]
    values += [{"id": number} for number in ("1", -1, 1e308, True)]
    lot = [json.dumps(draw.choice(values)) for _ in range(draw.randint(1, 100))]
    return target.request("POST", "/samples?producer=enemy", "\n".join(lot).encode())


_MAKERS = (noise, wrong_token, other_site, huge, deep, replayed, trick, ambiguous, misshapen, inputs)
MAKERS: dict[str, Maker] = {maker.__name__.replace("_", " "): maker for maker in _MAKERS}
