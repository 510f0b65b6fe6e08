"""An end in good order on a machine that announces its own."""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import time
from typing import TypeAlias

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.paths import anchored
from onion.validation import is_lazy, is_number

log = logging.getLogger("onion")

Told: TypeAlias = str | float | datetime | None
"""What an announcement says: a time, as a number of Unix seconds, as a datetime, or as the text of either; an empty
text: soon; None: there is none."""

SOON = -math.inf
SECONDS_BETWEEN_LOOKS = 1.0


class Preemption(RunnerItem):
    """End the run in good order before the machine does: the batch is finished, all rings leave, a Saver saves.

        Preemption("$SLURM_JOB_END_TIME", seconds_before=120)   # Slurm sets it for a job, in Unix seconds
        Preemption("/run/preempted", seconds_before=30)         # a file that appears

    The look is taken after a batch, at most once a second. In a run inside another one nothing is done: the test that
    is under way is finished.

    Args:
        announced: where the end is announced. A path: the file's appearance announces it. A text ``"$NAME"``: the
            environment variable of that name; unset or empty it announces nothing. A function without arguments, which
            returns a time or None for none. The time is a number of Unix seconds, a datetime, or ISO 8601
            (``2026-11-20T18:02:00Z``; without a zone it is local). An empty text is soon. What is no time counts as
            soon too, and that is logged once.
        seconds_before: how long before the end the run is to be stopped, in seconds: the time for a batch, a test if it
            has one, and a checkpoint. Default 60.
        clock: gives the time in Unix seconds. Default ``time.time``.

    Raises:
        CompositionError: ``announced`` is none of these, or ``seconds_before`` no number from 0.
    """

    passive = True
    keep_for_inference = False
    transient = ("_look", "_looked", "_end", "_warned")  # of this machine and this hour

    def __init__(
        self,
        announced: str | os.PathLike[str] | Callable[[], Told],
        seconds_before: float = 60.0,
        clock: Callable[[], float] = time,
    ) -> None:
        if not is_number(seconds_before) or seconds_before < 0:
            raise CompositionError(f"Preemption: seconds_before must be a number >= 0, got {seconds_before!r}.")
        self.announced, self.seconds_before, self.clock = announced, seconds_before, clock
        self._look = _way_to_look(announced)
        self._looked = -math.inf
        self._end: float | None = None
        self._warned = False

    def on_batch(self, state: State) -> HookIterator:
        """Ask for the end after the batch, if it is time."""
        yield
        if state.parent is not None:
            return
        now = self.clock()
        if not 0 <= now - self._looked < SECONDS_BETWEEN_LOOKS:  # below 0: the clock was set back
            self._looked, self._end = now, self._time_of(self._look())
        if self._end is not None and now >= self._end - self.seconds_before:
            state.stop(f"the machine ends {_said(self._end)}")

    def _time_of(self, told: Told) -> float | None:
        """Return the announced time in Unix seconds, or SOON."""
        if told is None or told == "":
            return None if told is None else SOON
        try:
            return _seconds(told)
        except (ValueError, OverflowError, OSError, TypeError):
            if not self._warned:
                log.warning("%s: %r is not a time; the end is assumed to be near", self.name, told)
            self._warned = True
            return SOON


def _way_to_look(announced: object) -> Callable[[], Told]:
    if isinstance(announced, str) and (named := re.fullmatch(r"\$(\w+)", announced)):
        return lambda: os.environ.get(named[1]) or None
    if isinstance(announced, str | os.PathLike) and os.fspath(announced):
        path = anchored(announced)
        return lambda: _content(path)
    if callable(announced) and not is_lazy(announced):
        return announced
    raise CompositionError(
        "Preemption: announced must be a path, '$NAME' of an environment variable, or a "
        f"function that returns a time or None; got {announced!r}."
    )


def _content(path: Path) -> str | None:
    """Return the beginning of a file that ought to hold a time, or None if there is no file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(100).strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # it is there, and this is all that matters
        return f"({error.strerror})"


def _seconds(told: str | float | datetime) -> float:
    """Return a time in Unix seconds.

    Raises:
        ValueError, OverflowError, OSError, TypeError: it is none.
    """
    if isinstance(told, str):
        told = _parsed(told.strip())
    at = told if isinstance(told, datetime) else datetime.fromtimestamp(told)  # which no clock shows, no one announced
    return at.timestamp()


def _parsed(text: str) -> float | datetime:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))  # Python 3.10 does not know the Z


def _said(end: float) -> str:
    return "soon" if end == SOON else f"at {datetime.fromtimestamp(end).isoformat(sep=' ', timespec='seconds')}"
