"""The batches of a pass, between the item that provides them and the run that draws them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any

from onion.data.interruptible_wait import Interrupted, InterruptibleWait
from onion.data.source import say_where

if TYPE_CHECKING:
    from onion.engine.state import State


class BatchIterator(Iterator[Any]):
    """The batches of a pass: errors get the place of the batch, and a signal ends the wait for the next one.

    Between two batches no work is in progress, so a signal that arrives during the wait ends the pass as if it had been
    stopped after the previous batch. If the current batch draws another one, as Accumulate does, the wait is completed:
    half a group would make a different update. ``batch_id`` has not changed in that case.

    Args:
        state: of the run that draws. Waits of other runs that share the data item, such as a test, are not ended.
        wait: what the batches wait with.
        batches: the batches.
        where: returns the place of the next batch, for error messages.
    """

    def __init__(self, state: State, wait: InterruptibleWait, batches: Iterator[Any], where: Callable[[], str]) -> None:
        self._state = weakref.ref(state)  # it holds this object: a cycle would keep the last batch in memory
        self._wait, self._batches, self._where = wait, batches, where
        self._next = batches.__next__
        self._begun: int | None = None

    def __next__(self) -> Any:
        state = self._state()
        batch_id = None if state is None else state.batch_id
        self._wait.may_end = batch_id != self._begun
        self._begun = batch_id
        try:
            return self._next()
        except StopIteration:
            raise
        except Interrupted as woken:
            if woken.wait is not self._wait:
                raise
        except Exception as error:
            say_where(error, self._where())
            if state is not None:
                state.data_error = error
            raise
        raise StopIteration

    def __length_hint__(self) -> Any:
        hint = length_hint(self._batches, -1)
        return hint if hint >= 0 else NotImplemented  # a stream has no length

    def wake(self, state: State) -> None:
        """End the wait of this run for its next batch, by `Interrupted`; called by a signal's handler."""
        if state is self._state():
            self._wait.wake()


POLL_INTERVAL = 0.1
"""Seconds between two checks for requests (stop, settings) while a run waits for data."""


class BatchBoundary(Iterator[Any]):
    """The batches of a pass, with a call of ``look`` before each batch that the Runner draws.

    If an inner item draws another batch for the current one, as Accumulate does, ``batch_id`` has not changed and
    ``look`` is not called. While the data are slow, it is called repeatedly, provided that they have a method
    ``ready(timeout)`` which returns whether a batch is available.
    """

    def __init__(self, batches: Iterator[Any], state: State, look: Callable[[State], None]) -> None:
        self._batches, self._state, self._look = batches, state, look
        self._ready: Callable[[float], bool] | None = getattr(batches, "ready", None)
        self._begun: int | None = None
        self.given = 0
        """Number of batches handed out, including those drawn by inner items."""

    def __next__(self) -> Any:
        if self._state.batch_id != self._begun:
            self._begun = self._state.batch_id
            self._look_around()
        batch = next(self._batches)
        self.given += 1
        return batch

    def _look_around(self) -> None:
        while True:
            self._look(self._state)
            if self._state.pass_stopped is not None:
                raise StopIteration
            if self._ready is None or self._ready(POLL_INTERVAL):
                return

    def ready(self, timeout: float) -> bool:
        """Return whether the next batch is available or the pass is over; for a boundary around this one."""
        self._look(self._state)
        return self._state.pass_stopped is not None or self._ready is None or self._ready(timeout)

    def __length_hint__(self) -> int:
        return length_hint(self._batches, 1)
