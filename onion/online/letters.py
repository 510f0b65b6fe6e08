"""Commands on their way from other threads to the next border of a run."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

import attrs

from onion.online.commands import COMMANDS
from onion.online.desk import Answer, Refused

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.online.record import Record

WAITING = 1000
"""How many commands wait for the next border at most."""


@attrs.frozen
class Letter:
    """A command, and where its answer goes."""

    command: str
    arguments: dict[str, Any]
    key: str | None
    answer: Future[Answer]


class Letters:
    """Takes commands in while a run is under way, from all threads, in the order in which they come.

    ``ask`` is for every thread; all else is for that of the run.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Letter] = SimpleQueue()
        self._lock = Lock()
        self._run: tuple[Runner, Record] | None = None

    def begin(self, runner: Runner, record: Record) -> None:
        """Take in what is asked of a run, as far as it can be done there."""
        self._run = runner, record

    def end(self) -> None:
        """Take in no more, and refuse what was not carried out."""
        with self._lock:
            self._run = None
        while (letter := self.take()) is not None:
            settle(letter.answer, Refused("the run has ended; the command was not carried out.", 409))

    def ask(self, command: str, arguments: Mapping[str, Any], key: str | None = None) -> Future[Answer]:
        """Put a command in line; return its answer to come.

        Raises:
            Refused: No run is under way, there is no such command, its arguments do not do there, another command had
                this key, or too many wait.
        """
        with self._lock:
            if self._run is None:
                raise Refused("no run is under way.", 409)
            runner, record = self._run
            if (known := record.known(key)) is not None:
                if not record.is_same(key, command, arguments):
                    raise Refused("this key was another command's; give each command a key of its own.", 409)
                return known
            if command not in COMMANDS:
                raise Refused(f"{command!r} is no command; there are {', '.join(COMMANDS)}.", 404)
            COMMANDS[command].check(runner, arguments)
            if self.count() >= WAITING:
                raise Refused(f"{WAITING} commands wait already; try again.", 503)
            letter = Letter(command, dict(arguments), key, record.expect(key, command, arguments))
            self._waiting.put(letter)
            return letter.answer

    def count(self) -> int:
        """Return how many wait."""
        return self._waiting.qsize()

    def take(self, timeout: float = 0.0) -> Letter | None:
        """Return the first in line; wait for one so many seconds at most. None: there is none."""
        try:
            return self._waiting.get(timeout=timeout)
        except Empty:
            return None


def settle(future: Future[Answer] | None, outcome: Answer | Refused) -> None:
    """Let those who wait for an answer have it, unless they have had it before."""
    if future is None or future.done():
        return
    if isinstance(outcome, Answer):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
