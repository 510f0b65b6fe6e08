"""A client in a process of its own, and synthetic samples, with as many tokens as the sentences of SST-2.

``python -m benchmarks.online_load.client SPOOL URL WHAT [LOT]`` prints ``ready``, starts at the first line that it
receives, stops at the second one, and prints its results as a line of JSON. The token is in the environment.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from onion.online import SpoolWriter

VOCABULARY = 30_522  # of BERT; the first ids are special tokens

FIRST, CLS, SEP = 1000, 101, 102

MEDIAN, SPREAD, SHORTEST, LONGEST = 11, 0.6, 3, 66
"""Of the lengths, drawn from a log-normal distribution: that gives a mean of 13 tokens, and about 32 in the longest of
32 samples, as in the training file of SST-2, special tokens included."""

SETTING = "parameter_updater.learning_rate"
RATES = (1e-5, 2e-5)
PAUSE = 0.5  # maximum time between two commands: without a pause each would be sent just after a batch boundary
LOTS = 50  # number of different ones, sent in turn


def made_up(count: int, seed: int) -> list[dict[str, Any]]:
    """Return samples as stored in a spool: ``{"ids": [token, ...], "label": 0 or 1}``."""
    random = np.random.default_rng(seed)
    lengths = np.clip(np.rint(random.lognormal(np.log(MEDIAN), SPREAD, count)), SHORTEST, LONGEST).astype(int)
    return [{"ids": _ids(random, length), "label": int(random.integers(2))} for length in lengths]


def _ids(random: np.random.Generator, length: int) -> list[int]:
    return [CLS, *random.integers(FIRST, VOCABULARY, length - 2).tolist(), SEP]


class Caller:
    """A persistent connection, with the token."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(str(urlsplit(url).netloc), timeout=120)
        self._headers = {"authorization": f"Bearer {os.environ['ONION_TOKEN']}"}

    def open(self, method: str, path: str, body: bytes | None = None) -> HTTPResponse:
        """Send a request; return the response, unread."""
        self._connection.request(method, path, body, self._headers)
        return self._connection.getresponse()

    def __call__(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Send a request; return the status and the JSON of the response."""
        answer = self.open(method, path, body)
        return answer.status, json.loads(answer.read())


def watch(spool: Path, url: str, over: Event) -> dict[str, Any]:
    """Request the status once a second; read the events."""
    told, reads = {"statuses": 0, "events": 0}, Event()

    def read() -> None:
        try:
            for line in Caller(url).open("GET", "/events"):
                told["events"] += line.startswith(b"event:")
                reads.set()
        finally:
            reads.set()

    Thread(target=read, daemon=True).start()
    reads.wait()
    caller = Caller(url)
    while not over.wait(1.0):
        told["statuses"] += caller("GET", "/status")[0] == 200
    return told


def post(spool: Path, url: str, over: Event, lot: int) -> dict[str, Any]:
    """Send samples over HTTP."""
    caller = Caller(url)
    bodies = [b"\n".join(json.dumps(each).encode() for each in samples) for samples in _lots(lot)]

    def send(number: int) -> int:
        status, answer = caller("POST", "/samples", bodies[number % LOTS])
        return int(answer["taken"]) if status == 200 else 0

    return _put(send, over)


def write(spool: Path, url: str, over: Event, lot: int) -> dict[str, Any]:
    """Write samples to the spool."""
    lots = _lots(lot)
    with SpoolWriter(spool, "load") as writer:
        return _put(lambda number: writer.write(lots[number % LOTS]), over)


def steer(spool: Path, url: str, over: Event) -> dict[str, Any]:
    """Set the learning rate repeatedly, at least once, at random times; return the response times."""
    caller, draw, refused = Caller(url), random.Random(os.getpid()), 0
    seconds: list[float] = []
    while not over.wait(draw.uniform(0, PAUSE)) or not (seconds or refused):
        body = json.dumps({SETTING: RATES[len(seconds) % 2]}).encode()
        begun = perf_counter()
        status, _ = caller("PATCH", "/settings", body)
        if status == 200:
            seconds.append(perf_counter() - begun)
        else:
            refused += 1
    return {"seconds": seconds, "refused": refused}


def _lots(size: int) -> list[list[dict[str, Any]]]:
    samples = made_up(LOTS * size, seed=7)
    return [samples[begin : begin + size] for begin in range(0, len(samples), size)]


def _put(send: Callable[[int], int], over: Event) -> dict[str, Any]:
    """Send one lot after the other, at least one; count the samples taken, and the lots refused."""
    begun, number, taken, refused = perf_counter(), 0, 0, 0
    while number == 0 or not over.is_set():
        count = send(number)
        number, taken, refused = number + 1, taken + count, refused + (count == 0)
    return {"taken": taken, "refused": refused, "seconds": perf_counter() - begun}


WORK: dict[str, Callable[..., dict[str, Any]]] = {"watch": watch, "post": post, "write": write, "steer": steer}


def main(spool: str, url: str, what: str, *lot: str) -> None:
    """Work from one line of standard input to the next."""
    over = Event()

    def end() -> None:
        sys.stdin.readline()
        over.set()

    print("ready", flush=True)
    sys.stdin.readline()
    Thread(target=end, daemon=True).start()
    print(json.dumps(WORK[what](Path(spool), url, over, *map(int, lot))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
