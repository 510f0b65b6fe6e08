"""Control of a run from other threads: they post messages, which are read between two batches."""

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

    A message is a function of the state, called in the thread of the run between two batches, when every ring has
    finished: a stop costs no batch, and a checkpoint is exact. While Accumulate works on a group of batches, messages
    wait. They are read in the order of posting; those posted meanwhile are read before the next batch, unless the run
    is paused.

    Only a run that has entered the mailbox reads messages, and it cancels those that are left at its end. Messages
    posted before or after wait for the next run, also if a run fails before it enters the mailbox: a stop that comes
    too late ends the next run before its first batch, unless its answer is cancelled. So wait for an answer with a
    limit: ``result(timeout=...)``.

    Put it inside the item that provides the data. One run at a time uses it: the runs of a test onion that shares the
    mailbox (made by ``without``) leave the messages to the training.

    Raises:
        CompositionError: an item further in provides the data, and none further out.
        HookError: on the way into a pass, if no item further out has provided data.
    """

    alone_because = "what is posted to it reaches one process"

    keep_for_inference = False
    passive = outermost_only = True
    place_rules = (BEHIND_DATA,)

    def __init__(self) -> None:
        self._messages: SimpleQueue[_Message] = SimpleQueue()
        self.reset()

    def reset(self) -> None:
        """Start unpaused; messages that were posted before wait for the run."""
        self._paused = False

    def post(self, message: Callable[[State], Answer]) -> Future[Answer]:
        """Post a message, from any thread.

        Returns:
            A future of what the message returns, or of the error that it raises, which is logged and does not affect
            the run. Do not wait for its ``result()`` in the thread of the run.

        Raises:
            CompositionError: ``message`` is not a plain function; a coroutine or generator would not be run.
        """
        if is_lazy(message) or not callable(message):
            raise CompositionError(f"post: the message must be a plain function of the state, got {message!r}.")
        answer: Future[Answer] = Future()
        self._messages.put(_Message(message, answer))
        return answer

    def pause(self) -> Future[None]:
        """Pause the run before its next batch until :meth:`resume`, or until it is stopped. Messages are read.

        A stop by a message or by Signals ends a paused run; TimeLimit, which checks the time after a batch, does not.
        """
        return self.post(lambda state: self._pause(True))

    def resume(self) -> Future[None]:
        """Continue a paused run."""
        return self.post(lambda state: self._pause(False))

    def _pause(self, paused: bool) -> None:
        self._paused = paused

    def initialize(self, state: State) -> HookIterator:
        """Cancel unread messages when the run ends."""
        try:
            yield
        finally:
            for _ in range(self._messages.qsize()):
                self._messages.get().cancel()

    def on_pass(self, state: State) -> None:
        """Read messages between the batches of the pass."""
        if state.batches is None:
            raise HookError(f"{self.name} is outside the item that provides the data; move it further in (after it).")
        state.batches = BatchBoundary(iter(state.batches), state, self._read)

    def _read(self, state: State) -> None:
        """Read the waiting messages, and while the run is paused also those that arrive."""
        waiting = self._messages.qsize()  # no more, or a message that posts itself again would block the run
        while state.pass_stopped is None and (waiting > 0 or self._paused):
            with suppress(Empty):
                self._messages.get(timeout=POLL_INTERVAL).open(state)
            waiting -= 1


class _Message:
    """A function of the state, and the future of its answer."""

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
                raise  # Ctrl-C is for the run
            log.exception("a message failed; the run continues")
        else:
            self.answer.set_result(answer)

    def cancel(self) -> None:
        """Cancel the answer."""
        if self.answer.cancel():
            self.answer.set_running_or_notify_cancel()  # or concurrent.futures.wait() would not notice
