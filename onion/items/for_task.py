"""A ring that is there for the batches of one task only."""

from __future__ import annotations

from inspect import isgeneratorfunction
from typing import cast

from onion.errors import CompositionError
from onion.item import RunnerItem, Way
from onion.rings import compose, refuse_coroutine
from onion.state import State
from onion.tree import Items


class ForTask(RunnerItem):
    """Let an item's batch ring be there for the batches of one task; those of others pass it by.

        Runner(TaskSampler(...), ForTask("mlm", Masker(tokenizer, seed=0)), ParameterUpdater(...), GradientMachine(...))

    Its rings around the run and the passes always stand. The item stands in the onion as in a nested Runner: it has its
    own name, settings and saved state. An item that insists on what stands inside it comes with that, in a Runner.

    Args:
        task: the name of the task, as ``state.task`` has it.
        item: the item, or a Runner.

    Raises:
        CompositionError: ``item`` is no item.
    """

    is_runner = True  # its item is walked, named, checked, saved and drawn as one in a nested Runner

    def __init__(self, task: str, item: RunnerItem) -> None:
        if not isinstance(item, RunnerItem):
            raise CompositionError(f"ForTask holds an item, not a {type(item).__name__}: ForTask({task!r}, Item(...)).")
        refuse_coroutine(item.on_batch)
        self.task = task
        self.items: Items = (item,)
        self._rings = isgeneratorfunction(item.on_batch)
        self._before = compose([item.on_batch], _nothing)

    def on_batch(self, state: State) -> Way:
        """Run the inside within the item's ring if the batch is of its task, else without."""
        if state.task != self.task:
            yield
        elif self._rings:
            yield from cast(Way, self.items[0].on_batch(state))
        else:
            self._before(state)
            yield

    @property
    def _state_class(self) -> type[State]:
        raise CompositionError(  # a Runner asks for it to make a nested Runner of other items, which has no task
            f"what {self.name} holds cannot be taken out or exchanged from outside; "
            f"replace {self.name!r} as a whole, with ForTask({self.task!r}, ...)."
        )


def _nothing(state: State) -> None:
    """Stand inside a plain hook, which has no way out: what stands further in runs after it."""
