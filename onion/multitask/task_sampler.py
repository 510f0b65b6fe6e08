"""The item that provides the data of several tasks, one task per batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from onion.data.batch_iterator import BatchIterator
from onion.data.infinite_loader import InfiniteLoader
from onion.data.interruptible_wait import InterruptibleWait
from onion.device import detached
from onion.engine.identity import constructed
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError, OnionError
from onion.items.data_provider import drawn_together, refuse_other_data
from onion.multitask.choice import LONGEST, WeightedChoice
from onion.multitask.pass_plan import PassPlan
from onion.multitask.strategies import MixRatio, Strategy, TaskInfo
from onion.multitask.task_batches import TaskBatches
from onion.multitask.task_data import (
    TaskData,
    complaints,
    complaints_of_choice,
    complaints_of_heads,
    complaints_of_passes,
    complaints_of_stages,
    endless_target,
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
    that an item skips counts as drawn. A run that is resumed with other tasks counts its passes from there. With the
    strategy ``onion.multitask.stages.Stages`` a pass is a stage, and the run ends with the last one.

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
    grows = ("tasks", "stages")
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
        self._refuse(complaints(self.tasks))
        self._refuse(complaints_of_choice(self.strategy, self.seed, self.finished))
        if self.strategy.stages is None:
            self._refuse(complaints_of_passes(self.tasks, self.reference))
            self.strategy.check(self._facts())
            self._refuse(endless_target(self.tasks, self.reference, self.strategy, self.finished))
        else:
            self._refuse(complaints_of_stages(self.tasks, self.reference))
            self.strategy.check(self._facts())
        refuse_other_data(self, runner)
        self._refuse(complaints_of_heads(self.tasks, self, runner))

    def _refuse(self, complaints: Iterator[str]) -> None:
        for complaint in complaints:
            raise CompositionError(f"{self.name}: {complaint}.")

    def _facts(self) -> dict[str, TaskInfo]:
        return {name: task.facts for name, task in self.tasks.items()}

    # -- running ------------------------------------------------------------------------------------------------------

    @property
    def _plan(self) -> PassPlan:
        return PassPlan(self.tasks, self.reference, self.strategy.stages)

    @property
    def batches_per_pass(self) -> int | None:
        """The planned batches of a pass, to which random choices may add some; None: stages differ in theirs."""
        return self._plan.batches_per_pass

    def batches_in(self, pass_id: int) -> int:
        """Return the planned batches of a pass; 0 after the last stage."""
        return self._plan.batches_in(pass_id - (self._first_pass or 0))

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
        """Count passes from here, unless this was restored; end a run whose stages are done."""
        if self._first_pass is None:
            self._first_pass = state.pass_id
        self._end_after_stages(state)

    def _end_after_stages(self, state: State) -> None:
        if self._plan.is_done(self._drawn()):
            state.stop("all stages are done")

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
            self._end_after_stages(state)

    def on_batch(self, state: State) -> HookIterator:
        """Store the loss of the batch for its task, without reading its value."""
        yield
        if state.loss is not None and state.task is not None and state.step == state.next_step:
            loss = detached(state.loss)
            self._losses[state.task] = loss
            self._strategy.note(state.task, loss)

    def _draws(self, state: State) -> TaskBatches:
        """Return the batches of the pass that begins."""
        planned = self._plan.until(state.pass_id + 1 - (self._first_pass or 0))
        exact = self.strategy.stages is not None
        last = sum(planned.values()) if exact else self._drawn() + LONGEST * self._plan.batches_in(0)
        stop = exact or self.finished == "stop"
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
        if self.strategy.stages is not None:
            raise OnionError(f"{self.name} draws the exact batches of its stages, in which tasks have no weights.")
        self._adjustable(task).refuse(f"the weight of {task!r}", weight)
        self._choice.set_weight(task, float(weight))

    def adjustable(self) -> dict[str, Adjustable]:
        """Return the weight of each task in the latest choice, where tasks have weights."""
        if self.strategy.stages is not None:
            return {}
        return {f"weight.{name}": self._adjustable(name) for name in self.tasks}

    def _adjustable(self, name: str) -> Adjustable:
        return Adjustable(1e-3, 1e3, lambda: float(self._choice.latest.get(name, 1.0)), partial(self.set_weight, name))

    # -- logging and saving -------------------------------------------------------------------------------------------

    def log_values(self) -> dict[str, float]:
        """Return the examples, the shares, the strategy's figures, and each task's loss, which waits for the device."""
        losses = {f"loss.{name}": float(loss) for name, loss in self._losses.items()}
        drawn = {name: feed.given for name, feed in self._feeds.items()}
        examples = {"examples": sum(feed.examples for feed in self._feeds.values())}
        return {**examples, **self._shares(), **self._strategy.readings(drawn), **losses}

    def _shares(self) -> dict[str, float]:
        drawn = self._drawn()
        if not drawn:
            return {}
        shares = {f"share.{name}": feed.given / drawn for name, feed in self._feeds.items()}
        planned = {f"planned_share.{name}": batches / drawn for name, batches in self._choice.expected.items()}
        return {**shares, **planned}

    def identity(self) -> dict[str, Any]:
        """Return tasks and settings, and the batches of a strategy's stages, counted from 1."""
        stages = self.strategy.stages
        table = {} if stages is None else {"stages": {str(i): dict(row) for i, row in enumerate(stages, start=1)}}
        return {**constructed(self), **table}

    def state_dict(self) -> dict[str, Any]:
        """Return the positions in all data, the state of choice and strategy, and the latest losses."""
        return {
            **self._choice.state_dict(),
            "feeds": json.dumps({name: feed.state_dict() for name, feed in self._feeds.items()}),
            "first_pass": self._first_pass,
            "costs": json.dumps({name: float(loss) for name, loss in self._losses.items()}),
        }

    def extended(self, saved: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
        """Let new tasks begin with their first batch.

        Raises:
            CheckpointError: the strategy has no stages, so the new tasks would lack a part in the passes before.
        """
        if self.strategy.stages is None:
            raise CheckpointError(
                f"{self.name}: {', '.join(tasks)} would lack the batches of all passes before, which "
                f"{type(self.strategy).__name__} plans for every task; a run that is extended has the strategy Stages."
            )
        fresh = self.state_dict()
        joined = {key: json.dumps(json.loads(fresh[key]) | json.loads(saved[key])) for key in ("feeds", "planned")}
        return {**saved, **joined}

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
