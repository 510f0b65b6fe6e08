"""One command with one file, in this process or in one of its own; and what is wrong with how it ended."""

from __future__ import annotations

import faulthandler
import io
import logging
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from typing import NoReturn

import attrs

from onion.cli import INTERRUPTED, TERMINATED, Printable, main
from spoiling.commands import Command

MISTAKE = 2
LONGEST_MESSAGE = 1000
"""Characters; more than what is shown of a file together with the longest name that a file may have."""

PROGRAM = "import sys, onion.cli; sys.exit(onion.cli.main())"


@attrs.frozen
class Ended:
    """How a command ended.

    Attributes:
        status: its exit status; None: it had to be stopped, or an error came through.
        said: what it wrote to standard error.
        logged: what it logged, line by line, where that is known apart.
        broken: what came through, or None.
    """

    status: int | None
    said: str
    logged: list[str] = attrs.field(factory=list)
    broken: str | None = None


class Hang(BaseException):
    """A command took too long."""


def run_here(command: Command, limit: int) -> Ended:
    """Call what the command calls, in this process; only in the main thread.

    Args:
        command: the command.
        limit: seconds after which it hangs. Where it hangs in what is not Python, the process ends after twice as long.

    Raises:
        KeyboardInterrupt: a signal ended the command.
    """
    said, log = io.StringIO(), _Log()
    with ExitStack() as held:
        held.enter_context(redirect_stderr(said))
        held.enter_context(redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")))
        held.enter_context(_standard_input(command))
        held.enter_context(_heard(log))
        try:
            with _limited(limit):
                status = main(command.words)
        except SystemExit as left:
            status = int(left.code or 0)
        except BaseException:
            return Ended(None, said.getvalue(), log.lines, traceback.format_exc())
    if status in (INTERRUPTED, TERMINATED):  # whoever sent that means all of them
        raise KeyboardInterrupt
    return Ended(status, said.getvalue(), log.lines)


def run_apart(command: Command, limit: int) -> Ended:
    """Run the command in a process of its own; arguments as in :func:`run_here`."""
    with ExitStack() as held:
        given = held.enter_context(command.input.open("rb")) if command.input else subprocess.DEVNULL
        words = [sys.executable, "-c", PROGRAM, *command.words]
        try:
            done = subprocess.run(  # noqa: S603  our own words only
                words, stdin=given, capture_output=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return Ended(None, "", broken=f"hangs for more than {limit} s")
    return Ended(done.returncode, done.stderr.decode(errors="replace"))


def faults_of_end(ended: Ended, apart: bool) -> Iterator[str]:
    """Tell what is wrong with how a command ended.

    Args:
        ended: how it ended.
        apart: whether it was a process of its own, where what is logged cannot be told from its message.
    """
    if ended.broken is not None:
        yield ended.broken
        return
    if ended.status not in (0, MISTAKE):
        yield f"status {ended.status}"
    lines = ended.said.splitlines()
    if "Traceback" in ended.said or not all(line.startswith(("onion", "See onion")) for line in lines):
        yield f"says {ended.said[-LONGEST_MESSAGE:]!r}"
    if not apart and not (1 <= len(lines) <= 2 if ended.status else not lines):
        yield f"says {len(lines)} lines with status {ended.status}"
    if ended.status and not lines:
        yield "says nothing of what was wrong"
    for line in [*lines, *ended.logged]:
        if not line.isprintable():
            yield f"says what cannot be seen: {line[:LONGEST_MESSAGE]!r}"
        if len(line) > LONGEST_MESSAGE:
            yield f"says a line of {len(line)} characters: {line[:100]!r}"


class _Log(logging.Handler):
    """Keeps what the command would log to the terminal."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(Printable("onion: %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).splitlines()


@contextmanager
def _heard(log: _Log) -> Iterator[None]:
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    root.handlers[:] = [log]
    try:
        yield
    finally:
        root.handlers[:] = before


@contextmanager
def _standard_input(command: Command) -> Iterator[None]:
    before = sys.stdin
    try:
        if command.input is not None:
            sys.stdin = io.TextIOWrapper(command.input.open("rb"))
        yield
    finally:
        if sys.stdin is not before:
            sys.stdin.close()
        sys.stdin = before


@contextmanager
def _limited(limit: int) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(limit)
    faulthandler.dump_traceback_later(2 * limit, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _hang(number: int, frame: FrameType | None) -> NoReturn:
    raise Hang("too long")
