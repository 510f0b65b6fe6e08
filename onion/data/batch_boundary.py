"""The border between two batches: where all that was begun is finished, and the next batch is not drawn yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onion.engine.state import State


PATIENCE = 0.1
"""Seconds after which a run that waits looks whether it has been asked to end, or for something else."""


class BatchBoundary(Iterator[Any]):
    """The batches of a pass, with a look around before each that the Runner draws.

    Where an item further in draws another one for the batch under way, as Accumulate does, ``batch_id`` has not moved,
    and there is no border. While the data are slow to give the next batch, it looks around again and again, if they
    have a method ``ready(timeout)`` that tells whether a batch is there.

    Args:
        batches: as the item that brings the data gave them.
        state: of the run.
        look: is called at each border.
    """

    def __init__(self, batches: Iterator[Any], state: State, look: Callable[[State], None]) -> None:
        self._batches, self._state, self._look = batches, state, look
        self._ready: Callable[[float], bool] | None = getattr(batches, "ready", None)
        self._begun: int | None = None
        self.given = 0
        """How many batches were handed out, those drawn further in included."""

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
            if self._ready is None or self._ready(PATIENCE):
                return

    def ready(self, timeout: float) -> bool:
        """Tell whether the next batch is there, or the pass over; look around too. For another border around this."""
        self._look(self._state)
        return self._state.pass_stopped is not None or self._ready is None or self._ready(timeout)

    def __length_hint__(self) -> int:
        return length_hint(self._batches, 1)
