"""The command line, ``onion COMMAND``; ``onion --help`` lists the commands.

``onion tune | cross-validate | lr-find`` compare trainings.

Exit status: 0; 2 for an error that the message explains; 128 + n after signal n (Ctrl-C: 130), the second one if there
were two.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from onion.cli import completion
from onion.cli.arguments import parser
from onion.cli.colours import error_line
from onion.cli.commands import Terminated
from onion.cli.parser import MISTAKE
from onion.errors import OnionError
from onion.messages import printable, shown

INTERRUPTED, TERMINATED, NO_READER = 130, 143, 141
ANSWERED = [signal.SIGTERM, signal.SIGHUP]


class Printable(logging.Formatter):
    """Format log records, whose messages may contain names and contents of files, for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Escape control characters."""
        return printable(super().format(record))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # JSON is UTF-8, whatever the locale
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    try:
        with _logging(logging.DEBUG if options.debug else logging.INFO), _handlers_kept():
            status = int(options.command(options))
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where an error is still reported
            return status
    except BrokenPipeError:
        _discard_output()
        return NO_READER
    except (OnionError, OSError) as error:  # OSError: a full disk under standard output, a name that is too long
        if options.debug:
            raise
        _discard_output()
        message = printable("\n".join([str(error), *getattr(error, "__notes__", ())]))
        print(error_line("onion", message, sys.stderr), file=sys.stderr)
        return MISTAKE
    except KeyboardInterrupt as error:
        if options.debug:
            raise
        terminated = isinstance(error, Terminated)
        print(f"onion: {'terminated' if terminated else 'interrupted'}", file=sys.stderr)
        return TERMINATED if terminated else INTERRUPTED


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    commands = parser()
    if completion.asked():
        completion.complete(commands)
    for argument in arguments:
        if argument.encode(errors="ignore").decode() != argument:  # it could not be tokenized or logged
            commands.error(f"{shown(argument)} is not UTF-8")
    return commands.parse_args(arguments, argparse.Namespace(arguments=arguments))


@contextmanager
def _logging(level: int) -> Iterator[None]:
    """Show log records from a level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(Printable("onion: %(message)s"))
    # Of other libraries warnings only: httpx, which fetches models, logs each request as information.
    others = level if level < logging.INFO else logging.WARNING
    handler.addFilter(lambda record: _is_ours(record) or record.levelno >= others)
    logging.basicConfig(handlers=[handler], level=others)
    log = logging.getLogger("onion")
    before = log.level
    log.setLevel(level)  # importing Paddle 3.1 or 3.2 raises the level of the root logger
    try:
        yield
    finally:
        log.setLevel(before)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == "onion"


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Restore the signal handlers (see commands.start_paddle)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ANSWERED}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not installed by Python
                signal.signal(number, handler)


def _discard_output() -> None:
    """Discard buffered standard output that cannot be written, for which Python would print an error at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
