"""What is printed: a line for each attempt, then the tables, then how to repeat what failed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from killing.attempt import GradientRollback
from killing.points import KINDS

SHOWN = 5
"""How many complaints of an attempt are printed."""


def line_of(attempt: GradientRollback, number: int, count: int) -> str:
    """Return the line of an attempt."""
    points = ", then ".join(map(str, attempt.points)) or "not killed"
    return f"{number:{len(str(count))}}/{count}  {'FAILED' if attempt.failed else 'same'}  {attempt.onion}: {points}"


def tables(attempts: Sequence[GradientRollback]) -> str:
    """Return both tables: an attempt that killed twice counts for both kinds."""
    kinds = [("none", lambda attempt: int(not attempt.points))]
    kinds += [(kind, _kills_of(kind)) for kind in KINDS]
    kinds += [("twice", lambda attempt: int(len(attempt.points) > 1))]
    onions = [(name, _is_of(name)) for name in sorted({attempt.onion for attempt in attempts})]
    kills = sum(len(attempt.points) for attempt in attempts)
    killed = [attempt for attempt in attempts if attempt.points]
    failed = sum(attempt.failed for attempt in attempts)
    return "\n".join(
        [
            *_table("kind of kill", kinds, attempts),
            "",
            *_table("onion", onions, killed),
            "",
            f"{kills} kills in {len(killed)} runs of {len(onions)} onions; {failed} failures",
        ]
    )


def _kills_of(kind: str) -> Callable[[GradientRollback], int]:
    return lambda attempt: sum(point.kind == kind for point in attempt.points)


def _is_of(name: str) -> Callable[[GradientRollback], int]:
    return lambda attempt: int(attempt.onion == name)


def _table(
    head: str, rows: Iterable[tuple[str, Callable[[GradientRollback], int]]], attempts: Sequence[GradientRollback]
) -> Iterable[str]:
    counted = [
        (name, sum(map(count, attempts)), sum(count(attempt) for attempt in attempts if attempt.failed))
        for name, count in rows
    ]
    width = max(len(head), *(len(name) for name, _, _ in counted))
    yield f"{head.ljust(width)}  tried  failures"
    yield f"{'-' * width}  -----  --------"
    for name, tried, failed in counted:
        yield f"{name.ljust(width)}  {tried:5}  {failed:8}"


def failure(attempt: GradientRollback, again: str) -> str:
    """Return what was wrong with an attempt, and the command that repeats it."""
    kills = chain.from_iterable(("--kill", str(point)) for point in attempt.points)
    words = ["--onion", attempt.onion, *(kills if attempt.points else ("--count", "0"))]
    complaints = [f"    {complaint}" for complaint in attempt.complaints[:SHOWN]]
    more = len(attempt.complaints) - SHOWN
    return "\n".join([f"{again} {shlex.join(words)}", *complaints, *([f"    and {more} more"] if more > 0 else [])])
