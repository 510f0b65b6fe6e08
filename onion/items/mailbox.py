"""A hand on the loop: other threads post messages, which are read between two batches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from onion.data.batch_iterator import POLL_INTERVAL, BatchBoundary
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import BEHIND_DATA
from onion.engine.state import State
from onion.errors import CompositionError, HookError
from onion.validation import is_lazy

log = logging.getLogger("onion")

Answer = TypeVar("Answer")


class Mailbox(RunnerItem):
    """Let other threads act on a run between two of its batches.

        mailbox = Mailbox()
        runner = Runner(saver, DataProvider(train), mailbox, updater, GradientMachine(network))
        Thread(target=runner.run).start()
        mailbox.post(lambda state: float(state.loss)).result()               # what a message returns comes back
        mailbox.post(lambda state: updater.set_learning_rate(1e-5))
        mailbox.pause()
        mailbox.post(saver.save)
        mailbox.post(lambda state: state.stop("seen enough"))

    A message is a function of the state. It is called in the thread of the run, between two batches: all that was begun
    is finished then, so a stop costs no batch, and a checkpoint is exact. Where Accumulate takes several batches for
    one, messages wait until it is done with them. Messages are read in the order in which they were posted; those that
    come while messages are read are for the next time, unless the run is paused.

    Only a run that is under way at the mailbox reads messages. What it has not read when it ends is cancelled. What is
    posted later, or before, waits for the next run: a stop that comes too late ends that one before its first batch,
    unless its answer is cancelled. A run that fails on the way in before it gets to the mailbox leaves messages
    waiting too. So do not wait for an answer without a limit: ``result(timeout=...)``.

    It stands further in than the item that brings the data. One run at a time has it: where a test onion made by
    ``without`` shares the mailbox, its runs within the training leave the messages to the training.

    Raises:
        CompositionError: an item further in brings the data, and none further out.
        HookError: on the way into a pass, when nothing further out has brought data.
    """

    keep_for_inference = False
    passive = outermost_only = True
    place_rules = (BEHIND_DATA,)

    def __init__(self) -> None:
        self._messages: SimpleQueue[_Message] = SimpleQueue()
        self.reset()

    def reset(self) -> None:
        """Begin unpaused; messages that were posted before wait for the run."""
        self._paused = False

    def post(self, message: Callable[[State], Answer]) -> Future[Answer]:
        """Leave a message, from any thread.

        Returns:
            The answer to come: what the message returns, or the error that it raises, which is logged and does not
            touch the run. ``result()`` waits for it, in the thread that calls it, which cannot be that of the run.

        Raises:
            CompositionError: ``message`` is no plain function; nothing would run a coroutine or a generator.
        """
        if is_lazy(message) or not callable(message):
            raise CompositionError(f"post: the message must be a plain function of the state, got {message!r}.")
        answer: Future[Answer] = Future()
        self._messages.put(_Message(message, answer))
        return answer

    def pause(self) -> Future[None]:
        """Let the run wait before its next batch until :meth:`resume`, or until it is stopped. Messages are read.

        A stop by a message or by Signals ends a paused run; TimeLimit does not, for it looks at the clock after a
        batch.
        """
        return self.post(lambda state: self._pause(True))

    def resume(self) -> Future[None]:
        """Let a paused run go on."""
        return self.post(lambda state: self._pause(False))

    def _pause(self, paused: bool) -> None:
        self._paused = paused

    def initialize(self, state: State) -> HookIterator:
        """Cancel what was not read when the run ends."""
        try:
            yield
        finally:
            for _ in range(self._messages.qsize()):
                self._messages.get().cancel()

    def on_pass(self, state: State) -> None:
        """Stand between the data and the batches."""
        if state.batches is None:
            raise HookError(f"{self.name} is outside the item that provides the data; move it further in (after it).")
        state.batches = BatchBoundary(iter(state.batches), state, self._read)

    def _read(self, state: State) -> None:
        """Read the messages that are there; those that come while the run is paused, too."""
        there = self._messages.qsize()  # only so many: a message that posts itself again would hold the run up for ever
        while state.pass_stopped is None and (there > 0 or self._paused):
            with suppress(Empty):
                self._messages.get(timeout=POLL_INTERVAL).open(state)
            there -= 1


class _Message:
    """A function of the state, and where its answer goes."""

    def __init__(self, message: Callable[[State], Any], answer: Future[Any]) -> None:
        self.message, self.answer = message, answer

    def open(self, state: State) -> None:
        """Call it, unless it was cancelled, and answer."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            answer = self.message(state)
        except BaseException as error:
            self.answer.set_exception(error)
            if not isinstance(error, Exception):
                raise  # Ctrl-C, which is meant for the run
            log.exception("a message failed; the run continues")
        else:
            self.answer.set_result(answer)

    def cancel(self) -> None:
        """Answer that it will not be read."""
        if self.answer.cancel():
            self.answer.set_running_or_notify_cancel()  # or concurrent.futures.wait() would not hear of it
