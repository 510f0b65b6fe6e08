"""An item whose batch hook runs for the batches of one task only."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from onion.engine.conditional import Conditional
from onion.engine.item import RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.multitask.task_sampler import TaskSampler

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class ForTask(Conditional):
    """Run an item's batch hook for the batches of one task only.

        Runner(TaskSampler(...), ForTask("mlm", Masker(tokenizer, seed=0)), ParameterUpdater(...), GradientMachine(...))

    ``onion.engine.conditional.Conditional`` describes how the item is placed, named and saved.

    Args:
        task: the name of the task, as in ``state.task``.
        item: the item, or a Runner.

    Raises:
        CompositionError: ``item`` is not an item, ``task`` not a string, or the TaskSampler has no such task.
    """

    may_join = True

    def __init__(self, task: str, item: RunnerItem) -> None:
        super().__init__(item, f"ForTask({task!r}, ...)")
        if not isinstance(task, str):
            raise CompositionError(f"ForTask: task must be a name, got {task!r}.")
        self.task = task

    def check(self, runner: Runner) -> None:
        """Require a task that the sampler has; without a sampler, ``state.task`` is set elsewhere."""
        around = runner.all(TaskSampler)
        names = [name for sampler in around for name in sampler.tasks]
        if around and self.task not in names:
            near = "".join(f"; did you mean {name!r}?" for name in get_close_matches(self.task, names, n=1))
            raise CompositionError(
                f"{self.name} is for the task {self.task!r}, which {around[0].name} does not have; it has "
                f"{', '.join(names)}{near or '.'}"
            )

    def is_active(self, state: State) -> bool:
        """Return whether the batch is of the task."""
        return state.task == self.task
