"""Requests that no service should heed. Each maker draws one: random bytes, or what a clever enemy would try."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TypeAlias

from abusing.target import Target

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
    "/static/..%5c..%5cetc%5cpasswd",
    "/static//etc/passwd",
    "/static/%00",
    "/static/page/../../limits.py",
    "//etc/passwd",
    "/rings/../../stop",
    "/rings/..%2f..%2fstop/enable",
    "/rings/%00/disable",
    "/samples/../stop",
    "/stop/",
    "/STOP",
    "/stop%00",
    "http://evil.example/stop",
    "/" + "a" * 8000,
)


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


def stranger(draw: random.Random, target: Target) -> bytes:
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


def bad_samples(draw: random.Random, target: Target) -> bytes:
    """Samples with the right token, none of which can be used."""
    values = [None, [], "x" * draw.randint(0, 2000), {"id": "1"}, {"id": -1}, {"id": 1e308}, {"ID": 1}, {"id": True}, 7]
    lot = [json.dumps(draw.choice(values)) for _ in range(draw.randint(1, 100))]
    return target.request("POST", "/samples?producer=enemy", "\n".join(lot).encode())


MAKERS: dict[str, Maker] = {
    "noise": noise,
    "wrong token": wrong_token,
    "other site": stranger,
    "huge": huge,
    "deep": deep,
    "replayed": replayed,
    "trick": trick,
}
