"""Attacks side by side, among them connections that only take places; and whether the training continues meanwhile."""

from __future__ import annotations

import errno
import math
import random
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TypeAlias

import attrs

from scripts.online.processes import PATIENCE
from scripts.service_attack import requests
from scripts.service_attack.requests import ATTACKER_TIMEOUT, FRIEND_TIMEOUT, STEERING, Maker, Target

Attack: TypeAlias = Callable[[Event, "Counter[str]"], None]

POLL_INTERVAL = 0.05
"""Seconds between two checks of the progress of the training."""

MIN_REQUESTS = 8
"""Requests that each attack has to make before a siege is over, one of them answered, or at least begun."""

STALL = PATIENCE
"""Seconds without a step after which the training has stopped for good."""


def asking(make: Maker, target: Target, seed: int) -> Attack:
    """Return an attack that sends one request after the other, and counts the answers.

    Who hears nothing waits longer the next time, so that a busy machine has time to answer.
    """
    draw = random.Random(seed)

    def attack(over: Event, tally: Counter[str]) -> None:
        timeout = ATTACKER_TIMEOUT
        while not over.is_set():
            status, _ = target.ask(make(draw, target), timeout)
            timeout = min(1.5 * timeout, FRIEND_TIMEOUT) if status == "silent" else ATTACKER_TIMEOUT
            tally[status] += 1

    return attack


@attrs.define
class Progress:
    """The steps of a training during a siege, and the longest time without one, in seconds."""

    steps: int
    stall: float


def lay(attacks: Mapping[str, Attack], seconds: float, steps: Path) -> tuple[Progress, dict[str, Counter[str]]]:
    """Run attacks side by side; return how the training went on, and what the attackers counted.

    It is over when each attack has done its work, so many seconds are over, and the training has made a step after
    that; or when the training has stopped.
    """
    tallies = {name: Counter[str]() for name in attacks}
    with side_by_side(attacks, tallies) as have_worked:
        progress = _watched(steps, seconds, have_worked)
    return progress, tallies


@contextmanager
def side_by_side(attacks: Mapping[str, Attack], tallies: Mapping[str, Counter[str]]) -> Iterator[Callable[[], bool]]:
    """Run attacks; give what tells whether each has done its work: it has ended, or was heard among many tries."""
    over, failed = Event(), list[BaseException]()

    def run(name: str) -> None:
        try:
            attacks[name](over, tallies[name])
        except BaseException as error:
            failed.append(error)

    def have_worked() -> bool:
        if failed:
            raise failed[0]
        return all(_is_heard(tallies[name]) or not thread.is_alive() for name, thread in threads.items())

    threads = {name: Thread(target=run, args=(name,)) for name in attacks}
    for thread in threads.values():
        thread.start()
    try:
        yield have_worked
    finally:
        over.set()
        for thread in threads.values():
            thread.join()
    if failed:
        raise failed[0]


def _is_heard(tally: Counter[str]) -> bool:
    told = dict(tally)
    return sum(told.values()) >= MIN_REQUESTS and any(name.isdigit() or name == "begun" for name in told)


def _watched(steps: Path, seconds: float, have_worked: Callable[[], bool]) -> Progress:
    begin = last = how_far(steps)
    moved, stall, worked_at = time.monotonic(), 0.0, math.inf
    end = moved + seconds
    while last <= worked_at and stall < STALL:
        time.sleep(POLL_INTERVAL)
        now = time.monotonic()
        stall = max(stall, now - moved)
        if (step := how_far(steps)) > last:
            last, moved = step, now
        if worked_at == math.inf and now >= end and have_worked():
            worked_at = last
    return Progress(last - begin, round(stall, 2))


def how_far(steps: Path) -> int:
    """Return the step that a trainer has last told of; 0 before the first."""
    return int(steps.read_bytes() or 0) if steps.exists() else 0


HELD_CONNECTIONS = 20
"""Of the attacks that send half a request, or slowly."""

RESERVED_FILES = 300
"""That this process needs besides its connections."""


def half(target: Target, over: Event, tally: Counter[str], draw: random.Random) -> None:
    while not over.is_set():
        with ExitStack() as room:
            for _ in range(HELD_CONNECTIONS):
                with suppress(OSError):
                    connection = room.enter_context(target.connect())
                    connection.sendall(requests.half(draw, target))
                    tally["begun"] += 1
            over.wait(draw.choice([0.0, 0.5, 2.0]))


def slow(target: Target, over: Event, tally: Counter[str], draw: random.Random) -> None:
    """Send good requests a byte at a time, never the last one."""
    with ExitStack() as room:
        places: list[tuple[socket.socket, bytes]] = []
        while not over.wait(0.1):
            while len(places) < HELD_CONNECTIONS and (begun := _begun(target, draw)) is not None:
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
    at_once = min(count, raised_limit() - RESERVED_FILES)
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
