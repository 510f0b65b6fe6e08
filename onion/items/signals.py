"""A polite end: the first signal finishes the batch, the second leaves at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.host import launch
from onion.items.saver import Saver

if TYPE_CHECKING:
    from onion.engine.runner import Runner

HANDLED: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, what schedulers send before they kill, and the end of the terminal."""


class Signals(RunnerItem):
    """Answer Ctrl-C, SIGTERM and SIGHUP in good order: finish the batch, leave all rings, and then the process.

        Runner(Signals(), Saver("out"), DataProvider(train), ...).run(passes=3)

    The first signal is a ``state.stop``: the batch under way is finished, a nested test too, and a Saver saves. Where
    the run waits for its next batch, it ends there and then, for an item that brings the data and has a method
    ``wake(state)``, as DataProvider and TaskSampler have. At the end of the run the process leaves with 128 + n after
    signal n, as shells and schedulers expect. In a notebook, or another interactive session, Ctrl-C ends the cell by a
    KeyboardInterrupt instead: the session goes on, and so does the run when it is run again.

    The second one leaves at once: Ctrl-C by KeyboardInterrupt, the others by SystemExit(128 + n). Nothing is saved
    then; what was saved is whole. SIGHUP is no second one to SIGHUP: a terminal that is closed sends it twice, from the
    system and from the shell. Nor is SIGTERM to SIGTERM under Paddle's launcher, which sends it three times, and
    SIGKILL after 30 seconds.

    Afterwards the handlers are those of before. A signal that is ignored stays so (``nohup``). Python delivers signals
    to its main thread only, so in another thread this item does nothing; nor does it in a run inside another one, whose
    signals are those of the outermost. A process that is forked during the run answers as it would have before the run:
    ``Process.terminate()`` and Ctrl-C end a worker.

    After the run ``received`` is the number of the first signal, or None.

    Args:
        leave: leave the process. False: the run returns, and the program goes on; it asks ``received``. Default True.

    Raises:
        CompositionError: it is inside a Saver, which would save outside of its protection.
        SystemExit: at the end of a run that a signal stopped, unless ``leave=False``; the code is 128 + n.
        KeyboardInterrupt: there, after Ctrl-C in an interactive session.
    """

    passive = True

    def __init__(self, leave: bool = True) -> None:
        self.leave = leave
        self.received: int | None = None

    def check(self, runner: Runner) -> None:
        """Require a place outside every Saver."""
        for saver in runner.all(Saver):
            if any(item is self for item in runner.inside(saver)):
                raise CompositionError(
                    f"{self.name} is inside {saver.name}, which has to save before the process exits, and while "
                    f"signals are still handled; move it further out (before {saver.name})."
                )

    def initialize(self, state: State) -> HookIterator:
        """Answer signals during the run; then leave, if there was one."""
        if state.parent is not None or threading.current_thread() is not threading.main_thread():
            yield
            return
        self.received = None
        with self._answering(state):
            yield
        if self.leave and self.received is not None:
            if self.received == signal.SIGINT and hasattr(sys, "ps1"):  # Python sets it in interactive sessions only
                raise Interrupted(f"stopped after step {state.step}")
            raise SystemExit(128 + self.received)

    @contextmanager
    def _answering(self, state: State) -> Iterator[None]:
        """Have the handlers in place."""
        # None: a handler that is not Python's, and could not be restored.
        handlers = {number: signal.getsignal(number) for number in HANDLED}
        before = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
        process = os.getpid()

        def handle(number: int, frame: FrameType | None) -> None:
            if os.getpid() == process:
                self._answer(number, state)
            else:  # a forked child, which has inherited this handler and not the run
                signal.signal(number, before[signal.Signals(number)])
                signal.raise_signal(number)

        try:
            for number in before:
                signal.signal(number, handle)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _answer(self, number: int, state: State) -> None:
        if self.received is None:
            self.received = number
            state.stop(f"received {signal.Signals(number).name}")
            _wake(state)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        elif number != self.received or not _is_repeated(number):
            raise SystemExit(128 + number)


def _is_repeated(number: int) -> bool:
    """Return whether one who sends this signal sends it more than once."""
    return number == signal.SIGHUP or (number == signal.SIGTERM and launch.by_paddle())


class Interrupted(KeyboardInterrupt):
    """The end of a cell whose run was stopped in good order."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints: the traceback would only lead here."""
        return [f"KeyboardInterrupt: {self}"]


def _wake(state: State) -> None:
    """End the wait of this run for its next batch, if it is waiting."""
    for item in state.runner.walk() if state.runner is not None else ():
        if item.provides_data:
            item.wake(state)
