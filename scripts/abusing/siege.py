"""Attacks side by side, and a look at the training meanwhile."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TypeAlias

import attrs
from streaming.waiting import PATIENCE

from abusing.requests import Maker
from abusing.target import FRIENDLY, Target
from abusing.target import PATIENCE as BRIEF

Attack: TypeAlias = Callable[[Event, "Counter[str]"], None]

LOOK = 0.05
"""Seconds between two looks at how far the training is."""

LEAST = 8
"""Requests that each attack has to make before a siege is over, and one of them answered, or at least begun."""

STALL = PATIENCE
"""Seconds without a step after which the training stands still for good."""


def asking(make: Maker, target: Target, seed: int) -> Attack:
    """Return an attack that sends one request after the other, and counts the answers.

    Who hears nothing waits longer the next time, so that a busy machine has time to answer.
    """
    draw = random.Random(seed)  # noqa: S311  the same for a seed

    def attack(over: Event, tally: Counter[str]) -> None:
        patience = BRIEF
        while not over.is_set():
            status, _ = target.ask(make(draw, target), patience)
            patience = min(1.5 * patience, FRIENDLY) if status == "silent" else BRIEF
            tally[status] += 1

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
    """Run attacks side by side; return how the training went on, and what the attackers counted.

    It is over when each attack has done its work, so many seconds are over, and the training has made a step after
    that; or when the training stands still.
    """
    tallies = {name: Counter[str]() for name in attacks}
    with _side_by_side(attacks, tallies) as have_worked:
        progress = _watched(steps, seconds, have_worked)
    return progress, tallies


@contextmanager
def _side_by_side(attacks: Mapping[str, Attack], tallies: Mapping[str, Counter[str]]) -> Iterator[Callable[[], bool]]:
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
    return sum(told.values()) >= LEAST and any(name.isdigit() or name == "begun" for name in told)


def _watched(steps: Path, seconds: float, have_worked: Callable[[], bool]) -> Progress:
    begin = last = how_far(steps)
    moved, stall, worked_at = time.monotonic(), 0.0, math.inf
    end = moved + seconds
    while last <= worked_at and stall < STALL:
        time.sleep(LOOK)
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
