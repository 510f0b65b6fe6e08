"""The batches of a pass as they arrive, between the provider and the run that draws them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onion.data.batch_boundary import PATIENCE
from onion.data.error_location import say_where
from onion.engine.state import State

if TYPE_CHECKING:
    from onion.online.stream_provider import StreamProvider


class Arrivals(Iterator[Any]):
    """The batches of a pass.

    Where a batch is under way that wants another one, as that of Accumulate does, a stop waits for it, as elsewhere.
    """

    def __init__(self, provider: StreamProvider, state: State) -> None:
        self._provider, self._state = provider, weakref.ref(state)
        self._begun: int | None = None

    def __next__(self) -> Any:
        state = self._state()
        assert state is not None, "batches are drawn by a run"
        between, self._begun = state.batch_id != self._begun, state.batch_id
        try:
            while not (between and state.pass_stopped is not None):
                if self.ready(PATIENCE):
                    if self._provider.is_over():
                        break
                    if (batch := self._provider.give()) is not None:
                        return batch
        except Exception as error:
            say_where(error, self._provider.place)
            state.data_error = error
            raise
        raise StopIteration

    def ready(self, timeout: float) -> bool:
        """Tell whether the next batch is there, or the pass over."""
        return self._provider.is_ready(timeout)

    def __length_hint__(self) -> Any:
        return 0 if self._provider.is_over() else NotImplemented
