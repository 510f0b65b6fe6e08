"""A ring that is there for the batches of one task only."""

from __future__ import annotations

from onion.item import RunnerItem
from onion.items.sometimes import Sometimes
from onion.state import State


class ForTask(Sometimes):
    """Let an item's batch ring be there for the batches of one task; those of others pass it by.

        Runner(TaskSampler(...), ForTask("mlm", Masker(tokenizer, seed=0)), ParameterUpdater(...), GradientMachine(...))

    What else holds of the item: see ``onion.items.sometimes.Sometimes``.

    Args:
        task: the name of the task, as ``state.task`` has it.
        item: the item, or a Runner.

    Raises:
        CompositionError: ``item`` is no item.
    """

    def __init__(self, task: str, item: RunnerItem) -> None:
        super().__init__(item, f"ForTask({task!r}, ...)")
        self.task = task

    def its_turn(self, state: State) -> bool:
        """Tell whether the batch is of the task."""
        return state.task == self.task
