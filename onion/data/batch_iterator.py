"""The batches of a pass between the item that brings them and the run that draws them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any

from onion.data.error_location import say_where
from onion.data.interruptible_wait import Interrupted, InterruptibleWait

if TYPE_CHECKING:
    from onion.engine.state import State


class BatchIterator(Iterator[Any]):
    """The batches of a pass, as the run draws them: an error says where it came up, a signal need not wait for data.

    Between two batches nothing is under way. So where a signal comes while the run waits for the next one, the pass
    ends there as if it had been stopped after the batch before. Where the batch under way wants another one, as that of
    Accumulate does, it is waited for: half a group would make another update. ``batch_id`` has not moved then.

    Args:
        state: of the run that draws. The waits of another one, as of a test that has the same data item, are not ended.
        wait: what the batches wait with.
        batches: the batches.
        where: tells the place of the next one, for a person to read.
    """

    def __init__(self, state: State, wait: InterruptibleWait, batches: Iterator[Any], where: Callable[[], str]) -> None:
        self._state = weakref.ref(state)  # which holds this one: a circle would keep the last batch's memory
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
        return hint if hint >= 0 else NotImplemented  # a stream does not know

    def wake(self, state: State) -> None:
        """End the wait for the next batch, if it is that of this run: called by a signal's handler.

        Raises:
            Woken: the wait is under way; it comes out of ``next`` as the end of the batches.
        """
        if state is self._state():
            self._wait.wake()
