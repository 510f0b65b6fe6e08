"""The item that provides the data of several tasks, one task per batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from onion.data.batch_iterator import BatchIterator
from onion.data.infinite_loader import InfiniteLoader
from onion.data.interruptible_wait import InterruptibleWait
from onion.device import detached
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError, OnionError
from onion.items.data_provider import drawn_together, refuse_other_data
from onion.multitask.choice import LONGEST, WeightedChoice
from onion.multitask.strategies import MixRatio, Strategy, TaskInfo
from onion.multitask.task_batches import TaskBatches
from onion.multitask.task_data import (
    TaskData,
    complaints,
    complaints_of_choice,
    complaints_of_heads,
    endless_target,
    plan,
)
from onion.training.adjustable import Adjustable

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class TaskSampler(RunnerItem):
    """Provide batches of several tasks, each of one task, whose name is ``state.task``.

        TaskSampler({"mrc": Task(DataProvider(mrc)), "mlm": Task(DataProvider(mlm), mix_ratio=0.5, target=False)})

    A batch that is a dict gets the name as ``"task"``. A pass is one over the reference task: after ``p`` passes
    ``int(p * mix_ratio * batches of the reference per pass)`` batches of a task are planned (PALM's rule), and a pass
    ends when every target has its planned batches. If an item ends a pass early, the next one makes up for it. A batch
    that an item skips counts as drawn. A run that is resumed with other tasks counts its passes from there.

    At the end of a pass, and in the readings, ``share.<task>`` is the share of a task in all batches, and
    ``planned_share.<task>`` its expectation by the strategy's weights. ``loss.<task>``, in the readings, is the latest
    loss of a task.

    Args:
        tasks: by name.
        strategy: the choice of the task; see ``onion.multitask.strategies``. Default: in proportion to the mix ratios.
        seed: of the choice. Default 0.
        reference: the task whose passes are counted. Default: the first target.
        finished: whether a target that has its planned batches is still drawn (``sampled``, as in PALM, the default),
            or not until the next pass (``stop``).

    Raises:
        CompositionError: tasks or strategy are invalid; a target would never be finished; a network inside has no head
            for a task, or no optimizer around it has parameters of that head; another item provides data too.
        HookError: a pass has drawn 1000 times the planned batches and still waits for a target.
    """

    provides_data = True
    # Positions and random choices are saved; the current batches are drawn again from there.
    transient = ("_feeds", "_supply", "_choice")

    def __init__(
        self,
        tasks: Mapping[str, TaskData],
        strategy: Strategy | None = None,
        *,
        seed: int = 0,
        reference: str | None = None,
        finished: Literal["sampled", "stop"] = "sampled",
    ) -> None:
        if not isinstance(tasks, Mapping):
            raise CompositionError(
                "TaskSampler: tasks must be a dict, {'name': TaskData(DataProvider(...)), ...}, not a "
                f"{type(tasks).__name__}."
            )
        self.tasks = dict(tasks)
        self.strategy = MixRatio() if strategy is None else strategy
        self.seed, self.reference, self.finished = seed, reference, finished
        self._feeds: dict[str, InfiniteLoader] = {}
        self._supply: BatchIterator | None = None
        self._strategy = self.strategy
        self._choice = WeightedChoice(self._strategy)
        self._losses: dict[str, Any] = {}
        self._first_pass: int | None = None

    # -- composing ----------------------------------------------------------------------------------------------------

    @property
    def alone_because(self) -> str:  # type: ignore[override]
        """Refuse data of a task that cannot be shared."""
        return next((task.provider.alone_because for task in self.tasks.values() if task.provider.alone_because), "")

    def check(self, runner: Runner) -> None:
        """Refuse tasks that cannot be trained, or not together."""
        self._refuse(complaints(self.tasks, self.reference))
        self._refuse(complaints_of_choice(self.strategy, self.seed, self.finished))
        self.strategy.check(self._facts())
        self._refuse(endless_target(self.tasks, self.reference, self.strategy, self.finished))
        refuse_other_data(self, runner)
        self._refuse(complaints_of_heads(self.tasks, self, runner))

    def _refuse(self, complaints: Iterator[str]) -> None:
        for complaint in complaints:
            raise CompositionError(f"{self.name}: {complaint}.")

    def _facts(self) -> dict[str, TaskInfo]:
        return {name: task.facts for name, task in self.tasks.items()}

    # -- running ------------------------------------------------------------------------------------------------------

    @property
    def batches_per_pass(self) -> int:
        """The planned batches of a pass; random choices may add some."""
        return sum(plan(self.tasks, self.reference, 1).values())

    def reset(self) -> None:
        """Start all data from the first batch, and a copy of the strategy."""
        self._feeds = {name: InfiniteLoader(task.provider.loader) for name, task in self.tasks.items()}
        self._supply = None
        self._strategy = copy(self.strategy)
        self._choice = WeightedChoice(self._strategy)
        self._choice.begin(self._facts(), self.seed)
        self._losses = {}
        self._first_pass = None

    def initialize(self, state: State) -> None:
        """Count passes from here, unless this was restored."""
        if self._first_pass is None:
            self._first_pass = state.pass_id

    def on_pass(self, state: State) -> HookIterator:
        """Provide the batches of this pass; end the threads of all tasks at its end."""
        wait = InterruptibleWait()
        for feed in self._feeds.values():
            feed.wait = wait
        for task in self.tasks.values():
            task.provider.loader.cut = None if self.group is None else self.group.cut
        draws = self._draws(state)
        self._supply = BatchIterator(state, wait, draws, draws.place)
        try:
            yield from drawn_together(self, state, self._supply, draws)
        finally:
            state.task = None
            with ExitStack() as closing:  # all of them, even if one fails
                for feed in self._feeds.values():
                    closing.callback(feed.close)
        if not state.pass_cut:
            state.report(self._shares())

    def on_batch(self, state: State) -> HookIterator:
        """Store the loss of the batch for its task, without reading its value."""
        yield
        if state.loss is not None and state.task is not None and state.step == state.next_step:
            loss = detached(state.loss)
            self._losses[state.task] = loss
            self._strategy.note(state.task, loss)

    def _draws(self, state: State) -> TaskBatches:
        """Return the batches of the pass that begins."""
        planned = plan(self.tasks, self.reference, state.pass_id + 1 - (self._first_pass or 0))
        last = self._drawn() + LONGEST * sum(plan(self.tasks, self.reference, 1).values())
        stop = self.finished == "stop"
        return TaskBatches(
            self.name, state, self.tasks, self._feeds, self._choice, planned=planned, last=last, stop=stop
        )

    def _drawn(self) -> int:
        return sum(feed.given for feed in self._feeds.values())

    def wake(self, state: State) -> None:
        """End the wait for the next batch, as ``DataProvider.wake`` does."""
        if self._supply is not None:
            self._supply.wake(state)

    # -- settings -----------------------------------------------------------------------------------------------------

    def set_weight(self, task: str, weight: float) -> None:
        """Replace the strategy's weight of a task; a resumed run does too.

        Args:
            task: the name of the task.
            weight: relative to the weights of the other tasks, from 0.001 to 1000.

        Raises:
            OnionError: there is no such task, or the weight is out of range.
        """
        if task not in self.tasks:
            raise OnionError(f"{self.name} has no task {task!r}; it has {', '.join(self.tasks)}.")
        self._adjustable(task).refuse(f"the weight of {task!r}", weight)
        self._choice.set_weight(task, float(weight))

    def adjustable(self) -> dict[str, Adjustable]:
        """Return the weight of each task in the latest choice."""
        return {f"weight.{name}": self._adjustable(name) for name in self.tasks}

    def _adjustable(self, name: str) -> Adjustable:
        return Adjustable(1e-3, 1e3, lambda: float(self._choice.latest.get(name, 1.0)), partial(self.set_weight, name))

    # -- logging and saving -------------------------------------------------------------------------------------------

    def log_values(self) -> dict[str, float]:
        """Return the number of examples, the shares, and each task's latest loss, which waits for the device."""
        losses = {f"loss.{name}": float(loss) for name, loss in self._losses.items()}
        return {"examples": sum(feed.examples for feed in self._feeds.values()), **self._shares(), **losses}

    def _shares(self) -> dict[str, float]:
        drawn = self._drawn()
        if not drawn:
            return {}
        shares = {f"share.{name}": feed.given / drawn for name, feed in self._feeds.items()}
        planned = {f"planned_share.{name}": batches / drawn for name, batches in self._choice.expected.items()}
        return {**shares, **planned}

    def state_dict(self) -> dict[str, Any]:
        """Return the positions in all data, the state of choice and strategy, and the latest losses."""
        return {
            **self._choice.state_dict(),
            "feeds": json.dumps({name: feed.state_dict() for name, feed in self._feeds.items()}),
            "first_pass": self._first_pass,
            "costs": json.dumps({name: float(loss) for name, loss in self._losses.items()}),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore them.

        Raises:
            CheckpointError: the tasks differ.
        """
        feeds = json.loads(saved["feeds"])
        if feeds.keys() != self.tasks.keys():
            raise CheckpointError(
                f"{self.name} was saved with the tasks {', '.join(feeds)}; here it has {', '.join(self.tasks)}."
            )
        self.reset()
        self._first_pass = int(saved.get("first_pass", 0))
        for name, place in feeds.items():
            self._feeds[name].load_state_dict(place)
        self._choice.load_state_dict(saved)
        self._losses = json.loads(saved["costs"])
