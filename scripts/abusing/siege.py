"""Attacks side by side, and a look at the training meanwhile."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TypeAlias

import attrs

from abusing.requests import Maker
from abusing.target import Target

Attack: TypeAlias = Callable[[Event, "Counter[str]"], None]

LOOK = 0.05
"""Seconds between two looks at how far the training is."""


def asking(make: Maker, target: Target, seed: int) -> Attack:
    """Return an attack that sends one request after the other, and counts the answers."""
    draw = random.Random(seed)  # noqa: S311  the same for a seed

    def attack(over: Event, tally: Counter[str]) -> None:
        while not over.is_set():
            tally[target.ask(make(draw, target))[0]] += 1

    return attack


@attrs.define
class Progress:
    """How a training went on during a siege.

    Attributes:
        steps: it made.
        stall: the longest time without one, in seconds.
    """

    steps: int
    stall: float


def lay(attacks: Mapping[str, Attack], seconds: float, steps: Path) -> tuple[Progress, dict[str, Counter[str]]]:
    """Run attacks side by side for a time; return how the training went on, and what the attackers counted."""
    tallies = {name: Counter[str]() for name in attacks}
    with _side_by_side(attacks, tallies):
        progress = _watched(steps, seconds)
    return progress, tallies


@contextmanager
def _side_by_side(attacks: Mapping[str, Attack], tallies: Mapping[str, Counter[str]]) -> Iterator[None]:
    over, failed = Event(), list[BaseException]()

    def run(name: str) -> None:
        try:
            attacks[name](over, tallies[name])
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=run, args=(name,)) for name in attacks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def _watched(steps: Path, seconds: float) -> Progress:
    begin = last = how_far(steps)
    deadline, moved, stall = time.monotonic() + seconds, time.monotonic(), 0.0
    while (now := time.monotonic()) < deadline:
        time.sleep(LOOK)
        stall = max(stall, now - moved)
        if (step := how_far(steps)) > last:
            last, moved = step, now
    stall = max(stall, time.monotonic() - moved)
    return Progress(last - begin, round(stall, 2))


def how_far(steps: Path) -> int:
    """Return the step that a trainer has last told of; 0 before the first."""
    return int(steps.read_bytes() or 0) if steps.exists() else 0
