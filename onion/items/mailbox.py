"""A hand on the loop: other threads post letters, which are read between two batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from operator import length_hint
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from onion.errors import HookError
from onion.item import RunnerItem, Way
from onion.state import State

log = logging.getLogger("onion")

Answer = TypeVar("Answer")

PATIENCE = 0.1
"""Seconds after which a paused run looks whether it has been asked to end."""


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

    A letter is a function of the state. It is called in the thread of the run, before the next batch is drawn from the
    data: all that was begun is finished then, so a stop costs no batch, and a checkpoint is exact. Letters are read in
    the order in which they were posted; those that are posted while no run is under way wait for the next one. What a
    run has not read when it ends is cancelled.

    It stands further in than the item that brings the data.

    Raises:
        HookError: on the way into a pass, when nothing further out has brought data.
    """

    predicts = False

    def __init__(self) -> None:
        self._letters: SimpleQueue[_Letter] = SimpleQueue()
        self._paused = False

    def post(self, letter: Callable[[State], Answer]) -> Future[Answer]:
        """Leave a letter, from any thread.

        Returns:
            The answer to come: what the letter returns, or the error that it raises, which is logged and does not touch
            the run. ``result()`` waits for it, in the thread that calls it, which cannot be that of the run.
        """
        answer: Future[Answer] = Future()
        self._letters.put(_Letter(letter, answer))
        return answer

    def pause(self) -> Future[None]:
        """Let the run wait before its next batch until :meth:`resume`, or until it is stopped. Letters are read."""
        return self.post(lambda state: self._pause(True))

    def resume(self) -> Future[None]:
        """Let a paused run go on."""
        return self.post(lambda state: self._pause(False))

    def _pause(self, paused: bool) -> None:
        self._paused = paused

    def initialize(self, state: State) -> Way:
        """Begin unpaused; cancel what was not read."""
        self._paused = False
        try:
            yield
        finally:
            with suppress(Empty):
                while True:
                    self._letters.get_nowait().answer.cancel()

    def on_pass(self, state: State) -> None:
        """Stand between the data and the batches."""
        if state.batches is None:
            raise HookError(f"{self.name} stands outside the item that brings the data; put it further in (after it).")
        state.batches = _Between(iter(state.batches), partial(self._read, state))

    def _read(self, state: State) -> bool:
        """Read the letters; tell whether the pass goes on."""
        while state.pass_stopped is None:
            try:
                letter = self._letters.get(block=self._paused, timeout=PATIENCE)
            except Empty:
                if not self._paused:
                    break
            else:
                letter.open(state)
        return state.pass_stopped is None


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


class _Between(Iterator[Any]):
    """Batches, with a look into the mailbox before each."""

    def __init__(self, batches: Iterator[Any], go_on: Callable[[], bool]) -> None:
        self._batches, self._go_on = batches, go_on

    def __next__(self) -> Any:
        if not self._go_on():
            raise StopIteration
        return next(self._batches)

    def __length_hint__(self) -> int:
        return length_hint(self._batches, 1)
