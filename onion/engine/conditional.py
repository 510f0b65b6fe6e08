"""The base of items that hold another item, whose batch ring is active for some batches only."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.item_tree import Items, walk
from onion.engine.rings import compose, refuse_coroutine
from onion.engine.state import State
from onion.errors import CompositionError

if TYPE_CHECKING:
    from onion.engine.timing import Timing


class Conditional(RunnerItem):
    """Run an item's batch ring where :meth:`is_active` returns True; otherwise the inside runs without it.

    Its rings around the run and the passes are always active. The item belongs to the onion as in a nested Runner: it
    has its own name, settings and saved state. An item that requires others inside it (a ParameterUpdater, Accumulate)
    comes with them, in a Runner.

    Args:
        item: the item, or a Runner.
        written: how the subclass is written with what it says of batches, for messages: ``Every(5, ...)``.

    Raises:
        CompositionError: ``item`` is no item.
    """

    lends_its_place = True  # the item's ring runs around what is inside this one
    is_runner = True  # its item is walked, named, checked, saved and drawn as one in a nested Runner

    def __init__(self, item: RunnerItem, written: str) -> None:
        if not isinstance(item, RunnerItem):
            wanted = written.replace("...", "Item(...)")
            raise CompositionError(f"{type(self).__name__} holds an item, not a {type(item).__name__}: {wanted}.")
        refuse_coroutine(item.on_batch)
        self.items: Items = (item,)
        self.everyone: Items = tuple(walk(self.items))
        self._written = written
        self._ring = batch_ring(item)

    def is_active(self, state: State) -> bool:
        """Return, on the way into a batch, whether the item's ring is active for it. Default: always."""
        return True

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside within the item's ring if that is active, else without it."""
        if self.is_active(state):
            yield from self._ring(state)
        else:
            yield

    def with_items(self, items: Items, clock: Timing | None = None) -> Conditional:
        """Return the same with another item in it."""
        if len(items) != 1:
            raise CompositionError(
                f"{self.name} holds one item, and would hold {len(items)}; replace {self.name!r} as a whole, with "
                f"{self._written.replace('...', 'Runner(...)')}."
            )
        other = copy(self)
        Conditional.__init__(other, items[0], self._written)
        return other


def batch_ring(item: RunnerItem) -> Callable[[State], HookIterator]:
    """Return an item's ``on_batch`` as a generator function, for others to ``yield from``."""
    if isgeneratorfunction(item.on_batch):
        return item.on_batch
    before = compose([item.on_batch], _nothing)

    def ring(state: State) -> HookIterator:
        before(state)
        yield

    return ring


def _nothing(state: State) -> None:
    """Do nothing inside a plain hook, which has no way out: what is further in runs after it."""
