"""A hand on the loop: other threads post letters, which are read between two batches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from onion.checks import is_lazy
from onion.errors import CompositionError, HookError
from onion.item import RunnerItem, Way
from onion.items.border import PATIENCE, Border
from onion.places import BEHIND_DATA
from onion.state import State

log = logging.getLogger("onion")

Answer = TypeVar("Answer")


class Mailbox(RunnerItem):
    """Let other threads act on a run between two of its batches.

        mailbox = Mailbox()
        runner = Runner(saver, DataProvider(train), mailbox, updater, GradientMachine(network))
        Thread(target=runner.run).start()
        mailbox.post(lambda state: float(state.cost)).result()               # what a letter returns comes back
        mailbox.post(lambda state: updater.set_learning_rate(1e-5))
        mailbox.pause()
        mailbox.post(saver.save)
        mailbox.post(lambda state: state.stop("seen enough"))

    A letter is a function of the state. It is called in the thread of the run, between two batches: all that was begun
    is finished then, so a stop costs no batch, and a checkpoint is exact. Where Accumulate takes several batches for
    one, letters wait until it is done with them. Letters are read in the order in which they were posted; those that
    come while letters are read are for the next time, unless the run is paused.

    Only a run that is under way at the mailbox reads letters. What it has not read when it ends is cancelled. What is
    posted later, or before, waits for the next run: a stop that comes too late ends that one before its first batch,
    unless its answer is cancelled. A run that fails on the way in before it gets to the mailbox leaves letters
    waiting too. So do not wait for an answer without a limit: ``result(timeout=...)``.

    It stands further in than the item that brings the data. One run at a time has it: where a test onion made by
    ``without`` shares the mailbox, its runs within the training leave the letters to the training.

    Raises:
        CompositionError: an item further in brings the data, and none further out.
        HookError: on the way into a pass, when nothing further out has brought data.
    """

    predicts = False
    watches = True
    place_rules = (BEHIND_DATA,)

    def __init__(self) -> None:
        self._letters: SimpleQueue[_Letter] = SimpleQueue()
        self._run: State | None = None
        self._paused = False

    def post(self, letter: Callable[[State], Answer]) -> Future[Answer]:
        """Leave a letter, from any thread.

        Returns:
            The answer to come: what the letter returns, or the error that it raises, which is logged and does not touch
            the run. ``result()`` waits for it, in the thread that calls it, which cannot be that of the run.

        Raises:
            CompositionError: ``letter`` is no plain function; nothing would run a coroutine or a generator.
        """
        if is_lazy(letter) or not callable(letter):
            raise CompositionError(f"post: {letter!r} is no plain function of the state.")
        answer: Future[Answer] = Future()
        self._letters.put(_Letter(letter, answer))
        return answer

    def pause(self) -> Future[None]:
        """Let the run wait before its next batch until :meth:`resume`, or until it is stopped. Letters are read.

        A stop by a letter or by Signals ends a paused run; Limit does not, for it looks at the clock after a batch.
        """
        return self.post(lambda state: self._pause(True))

    def resume(self) -> Future[None]:
        """Let a paused run go on."""
        return self.post(lambda state: self._pause(False))

    def _pause(self, paused: bool) -> None:
        self._paused = paused

    def initialize(self, state: State) -> Way:
        """Begin unpaused; cancel what was not read. A run inside the one that has the mailbox leaves it alone."""
        if self._run is not None:
            yield
            return
        self._run, self._paused = state, False
        try:
            yield
        finally:
            self._run = None
            for _ in range(self._letters.qsize()):
                self._letters.get().cancel()

    def on_pass(self, state: State) -> None:
        """Stand between the data and the batches."""
        if state is not self._run:
            return
        if state.batches is None:
            raise HookError(f"{self.name} stands outside the item that brings the data; put it further in (after it).")
        state.batches = Border(iter(state.batches), state, self._read)

    def _read(self, state: State) -> None:
        """Read the letters that are there; those that come while the run is paused, too."""
        there = self._letters.qsize()  # only so many: a letter that posts itself again would hold the run up for ever
        while state.pass_stopped is None and (there > 0 or self._paused):
            with suppress(Empty):
                self._letters.get(timeout=PATIENCE).open(state)
            there -= 1


class _Letter:
    """A function of the state, and where its answer goes."""

    def __init__(self, letter: Callable[[State], Any], answer: Future[Any]) -> None:
        self.letter, self.answer = letter, answer

    def open(self, state: State) -> None:
        """Call it, unless it was cancelled, and answer."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            answer = self.letter(state)
        except BaseException as error:
            self.answer.set_exception(error)
            if not isinstance(error, Exception):
                raise  # Ctrl-C, which is meant for the run
            log.exception("a letter failed; the run goes on")
        else:
            self.answer.set_result(answer)

    def cancel(self) -> None:
        """Answer that it will not be read."""
        if self.answer.cancel():
            self.answer.set_running_or_notify_cancel()  # or concurrent.futures.wait() would not hear of it
