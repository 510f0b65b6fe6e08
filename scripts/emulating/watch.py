"""A process that says what it does next, one line a step; it is ended if it is silent for too long."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from time import perf_counter

BEGINNING = "started"


@dataclass(frozen=True)
class End:
    """How a process ended.

    Attributes:
        step: the last one that it named.
        code: its exit status, or minus the signal that ended it.
        late: whether it was ended here, because it had been silent for too long.
    """

    step: str
    code: int
    late: bool

    @property
    def complaint(self) -> str | None:
        """What was wrong, in words; None: nothing."""
        if self.late and self.code:  # else it ended by itself at the last moment
            return f"{self.step!r} hangs: it did not end in time"
        if self.code < 0:
            return f"{self.step!r} was ended by {_signal(-self.code)}"
        return f"{self.step!r} failed with exit status {self.code}" if self.code else None


def watch(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    errors: Path,
    limit: float,
    tell: Callable[[str, float], None],
) -> End:
    """Run a process to its end, or until it has named no step for too long.

    Args:
        command: prints a line before each step.
        environment: of the process.
        folder: where it runs.
        errors: the file that gets what it writes to standard error.
        limit: the seconds that a step may take.
        tell: is called with each step that came to its end, and the seconds it took.
    """
    step, begun, late = BEGINNING, perf_counter(), False

    def end() -> None:
        nonlocal late
        late = True
        process.kill()

    output = {"stdout": subprocess.PIPE, "text": True}
    with (
        errors.open("w") as words,
        subprocess.Popen(command, env=environment, cwd=folder, stderr=words, **output) as process,  # noqa: S603
    ):
        assert process.stdout is not None
        timer = _started(limit, end)
        for line in process.stdout:
            timer.cancel()
            tell(step, perf_counter() - begun)
            step, begun, timer = line.rstrip("\n"), perf_counter(), _started(limit, end)
        code = process.wait()
        timer.cancel()
    if code == 0:
        tell(step, perf_counter() - begun)
    return End(step, code, late)


def _started(seconds: float, act: Callable[[], None]) -> Timer:
    timer = Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


def _signal(number: int) -> str:
    name = signal.strsignal(number) or "a signal"
    if number == signal.SIGILL:
        return f"signal {number} ({name}): the processor lacks an instruction that was met there"
    return f"signal {number} ({name})"
