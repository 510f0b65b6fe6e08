"""Connections that ask for nothing, and take places."""

from __future__ import annotations

import errno
import random
import resource
import socket
import time
from collections import Counter
from contextlib import ExitStack, suppress
from threading import Event

from abusing.requests import STEERING
from abusing.target import Target

HELD = 20
"""Connections of those who send half a request, or slowly."""

SPARE = 300
"""Files that this process needs besides its connections."""


def half(target: Target, over: Event, tally: Counter[str], draw: random.Random) -> None:
    """Send the beginnings of good requests, and wait, or leave."""
    while not over.is_set():
        with ExitStack() as room:
            for _ in range(HELD):
                request = target.request(*draw.choice(STEERING), "x: y")
                with suppress(OSError):
                    connection = room.enter_context(target.connect())
                    connection.sendall(request[: draw.randrange(1, len(request) - 1)])
                    tally["begun"] += 1
            over.wait(draw.choice([0.0, 0.5, 2.0]))


def slow(target: Target, over: Event, tally: Counter[str], draw: random.Random) -> None:
    """Send good requests a byte at a time, never the last one."""
    with ExitStack() as room:
        places: list[tuple[socket.socket, bytes]] = []
        while not over.wait(0.1):
            while len(places) < HELD and (begun := _begun(target, draw)) is not None:
                room.enter_context(begun[0])
                places.append(begun)
                tally["begun"] += 1
            places = [(connection, rest[1:]) for connection, rest in places if _sent(connection, rest[:1])]
            tally["bytes"] += len(places)


def _begun(target: Target, draw: random.Random) -> tuple[socket.socket, bytes] | None:
    with suppress(OSError):
        return target.connect(), target.request(*draw.choice(STEERING[:6]), "x: " + "y" * 5000)[:-10]
    return None


def _sent(connection: socket.socket, byte: bytes) -> bool:
    try:
        connection.sendall(byte)
    except OSError:
        connection.close()
        return False
    return bool(byte)


def crowd(target: Target, over: Event, tally: Counter[str], count: int) -> None:
    """Open so many connections, as many of them at once as this process may have, and hold them for a moment."""
    at_once = min(count, raised_limit() - SPARE)
    while not over.is_set() and tally["opened"] < count:
        with ExitStack() as room:
            wave = min(at_once, count - tally["opened"])
            for _ in range(wave):
                if over.is_set():
                    break
                connection = room.enter_context(socket.socket())
                connection.setblocking(False)
                tally["opened"] += connection.connect_ex(("127.0.0.1", target.port)) in (0, errno.EINPROGRESS)
            time.sleep(0.5)
            tally["at once"] = max(tally["at once"], wave)


def raised_limit() -> int:
    """Let this process have as many files open as the system allows; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 10**6
