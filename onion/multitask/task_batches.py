"""The batches of a pass over several tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from onion.data.cut import Pieces
from onion.data.infinite_loader import InfiniteLoader
from onion.engine.state import State
from onion.errors import HookError
from onion.multitask.choice import LONGEST, WeightedChoice
from onion.multitask.task_data import TaskData


@attrs.frozen(eq=False)
class TaskBatches(Iterator[Any]):
    """The batches of a pass, drawn on demand, each of one task.

    A batch that is a dict gets the task's name, as ``"task"``.

    Attributes:
        item: the name of the sampler, for messages.
        state: of the run; its ``task`` becomes that of each batch.
        tasks: by name.
        feeds: the data of each task, with its position.
        choice: of the next task.
        planned: batches of each task that the run should have drawn at the end of this pass.
        last: the number of batches of the run after which this pass counts as endless.
        stop: whether a target that has its planned batches is not drawn any more.

    Raises:
        HookError: the pass is endless, or no task that may be drawn has a weight.
    """

    item: str
    state: State
    tasks: Mapping[str, TaskData]
    feeds: Mapping[str, InfiniteLoader]
    choice: WeightedChoice
    planned: Mapping[str, int]
    last: int
    stop: bool

    def __next__(self) -> Any:
        if not self._left():
            raise StopIteration
        name = self._choose() if self.choice.chosen is None else self.choice.chosen
        batch = next(self.feeds[name])
        self.state.task, self.choice.chosen = name, None
        return batch.each(partial(_named, name)) if isinstance(batch, Pieces) else _named(name, batch)

    def put_back(self, examples: int) -> None:
        """Count the batch that was drawn last, of so many examples, as not drawn; its task remains chosen."""
        assert self.state.task is not None
        self.feeds[self.state.task].put_back(examples)
        self.choice.chosen = self.state.task

    def __length_hint__(self) -> int:
        return self._left()

    def place(self) -> str:
        """Return the position of the next batch in the data."""
        name = self.choice.chosen
        return self.item if name is None else f"{self.item}, the task {name!r}, {self.feeds[name].place}"

    def _left(self) -> int:
        """Return the planned batches that this pass lacks; 0 when every target has its own."""
        lacking = {name: self._lacks(name) for name in self.tasks}
        waits = any(lacking[name] for name, task in self.tasks.items() if task.target)
        return sum(lacking.values()) if waits else 0

    def _lacks(self, name: str) -> int:
        return max(0, self.planned[name] - self.feeds[name].given)

    def _choose(self) -> str:
        step = sum(feed.given for feed in self.feeds.values())
        if step >= self.last:
            raise self._endless()
        names = [name for name in self.tasks if self._open(name)]
        weights = self.choice.weights(step, names)
        if not weights:
            raise HookError(
                f"{self.item}: at step {step} {self._strategy} gave a weight to none of the tasks that may be drawn "
                f"({', '.join(names)})."
            )
        return self.choice.draw(weights)

    def _open(self, name: str) -> bool:
        """Return whether a task may be drawn."""
        return not self.stop or not self.tasks[name].target or self._lacks(name) > 0

    def _endless(self) -> HookError:
        waiting = next(name for name, task in self.tasks.items() if task.target and self._lacks(name))
        return HookError(
            f"{self.item}: this pass has drawn {LONGEST} times the batches that are planned for one, and still lacks "
            f"{self._lacks(waiting)} of the target {waiting!r}. {self._strategy} gives it too little weight: give it "
            "more, or make it auxiliary (target=False)."
        )

    @property
    def _strategy(self) -> str:
        return type(self.choice.strategy).__name__


def _named(task: str, batch: Any) -> Any:
    return {**batch, "task": task} if isinstance(batch, dict) else batch
