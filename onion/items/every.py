"""A ring that is there every n-th batch only."""

from __future__ import annotations

from inspect import isgeneratorfunction
from typing import cast

from onion.errors import CompositionError
from onion.item import RunnerItem, Way
from onion.rings import refuse_coroutine
from onion.state import State
from onion.tree import Items


class Every(RunnerItem):
    """Let an item's batch ring be there every ``n``-th batch; otherwise the inside runs without it.

        Runner(data, Runner(d_updater, d_machine), Every(5, Runner(g_updater, g_machine)))  # 5 critic steps to one

    Its rings around the run and the passes always stand. It is the steps of the whole run that are counted (with n = 5:
    the 5th, the 10th, ...), so a resumed run goes on in the same beat.

    The item stands in the onion as in a nested Runner: it has its own name, settings and saved state. An item that
    insists on what stands inside it (a ParameterUpdater, Accumulate) comes with that, in a Runner.

    Args:
        n: the period in batches, from 1.
        item: the item, or a Runner.

    Raises:
        CompositionError: ``n`` is no number from 1, or ``item`` is no item.
    """

    is_runner = True  # its item is walked, named, checked, saved and drawn as one in a nested Runner

    def __init__(self, n: int, item: RunnerItem) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise CompositionError(f"Every: n={n!r} is no number of batches from 1.")
        if not isinstance(item, RunnerItem):
            raise CompositionError(f"Every holds an item, not a {type(item).__name__}: Every({n}, Item(...)).")
        refuse_coroutine(item.on_batch)
        self.n = n
        self.items: Items = (item,)
        self._rings = isgeneratorfunction(item.on_batch)

    def on_batch(self, state: State) -> Way:
        """Run the inside within the item's ring if it is its turn, else without."""
        [item] = self.items
        if state.next_step % self.n:
            yield
        elif self._rings:
            yield from cast(Way, item.on_batch(state))
        else:
            item.on_batch(state)
            yield

    @property
    def _state_class(self) -> type[State]:
        raise CompositionError(  # a Runner asks for it to make a nested Runner of other items, which has no period
            f"what {self.name} holds cannot be taken out or exchanged from outside; "
            f"replace {self.name!r} as a whole, with Every({self.n}, ...)."
        )
