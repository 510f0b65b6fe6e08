"""The ring that brings the data of several tasks, a batch of one task at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onion.data.feed import Feed
from onion.data.wait import Wait
from onion.device import detached
from onion.errors import CheckpointError, CompositionError, HookError, OnionError
from onion.item import RunnerItem, Way
from onion.items.adjustable import Adjustable
from onion.items.data_provider import refuse_other_data
from onion.items.heads import complaints_of_heads
from onion.items.supply import Supply
from onion.items.task import Draws, Task, complaints, complaints_of_choice, endless_target, plan
from onion.sampling import Facts, MixRatio, Strategy
from onion.sampling.rehearsal import LONGEST
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner

RUNNING = ("_feeds", "_supply", "_chosen", "_planned", "_costs", "_random", "_first_pass", "_by_hand", "_latest")
"""What a run of the sampler keeps, but for what its strategy keeps."""


class TaskSampler(RunnerItem):
    """Put the batches of several tasks on the state, each of one task; ``state.task`` is its name.

        TaskSampler({"mrc": Task(DataProvider(mrc)), "mlm": Task(DataProvider(mlm), mix_ratio=0.5, target=False)})

    A batch that is a dict gets the name too, as ``"task"``. A pass is one over the reference task: after ``p`` passes
    ``int(p * mix_ratio * batches of the reference a pass)`` batches of a task are planned (PALM's rule), and a pass
    ends when every target has had its own. What a pass lacks that an item ended early, the next one makes up for. A
    batch that an item skips was drawn, and counts here. A run that goes on with other tasks counts its passes anew.

    On the way out of a pass, and in the readings, ``share.<task>`` is the part of all batches that were of a task, and
    ``planned_share.<task>`` what the strategy's weights had meant it to be. ``cost.<task>``, in the readings, is the
    latest cost of a task.

    Args:
        tasks: by name.
        strategy: how the task of a batch is chosen; see ``onion.sampling``. Default: in proportion to the mix ratios.
        seed: of the choice. Default 0.
        reference: the task whose passes count. Default: the first target.
        finished: ``sampled`` (PALM, default): a target that has fulfilled its plan may be drawn on; ``stop``: it is not
            drawn until the next pass.

    Raises:
        CompositionError: the tasks, or strategy and tasks, do not do; a target would never be finished; a network
            further in has no head for a task, or the optimizer around it has nothing of that head; another item of the
            onion brings data too.
        HookError: in a pass that has drawn 1000 times the batches planned for one and still waits for a target.
    """

    brings_data = True
    unsaved = ("_feeds", "_supply", "_latest")  # their places are saved; the batches under way are made anew from there

    def __init__(
        self,
        tasks: Mapping[str, Task],
        strategy: Strategy | None = None,
        *,
        seed: int = 0,
        reference: str | None = None,
        finished: Literal["sampled", "stop"] = "sampled",
    ) -> None:
        if not isinstance(tasks, Mapping):
            raise CompositionError(
                "TaskSampler takes its tasks by name, {'name': Task(DataProvider(...)), ...}, not as a "
                f"{type(tasks).__name__}."
            )
        self.tasks = dict(tasks)
        self.strategy = MixRatio() if strategy is None else strategy
        self.seed, self.reference, self.finished = seed, reference, finished
        self._feeds: dict[str, Feed] = {}
        self._supply: Supply | None = None
        self._chosen: str | None = None
        self._planned: dict[str, float] = {}
        self._costs: dict[str, Any] = {}
        self._by_hand: dict[str, float] = {}
        self._latest: dict[str, float] = {}
        self._first_pass = 0
        self._resumed = self._under_way = False

    # -- composing ----------------------------------------------------------------------------------------------------

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

    def _facts(self) -> dict[str, Facts]:
        return {name: task.facts for name, task in self.tasks.items()}

    # -- running ------------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> Way:
        """Begin anew, unless the run is resumed."""
        with self._alone():
            if not self._resumed:
                self._begin(state.pass_id)
            self._resumed = False
            yield

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Set a run around this one aside that shares the item, as a test made of the training does."""
        around = {name: getattr(self, name) for name in RUNNING} if self._under_way else None
        strategy = None if around is None else json.dumps(self.strategy.state_dict())
        self._under_way = True
        try:
            yield
        finally:
            self._under_way = around is not None
            if around is not None and strategy is not None:
                vars(self).update(around)
                self.strategy.begin(self._facts())
                self.strategy.load_state_dict(json.loads(strategy))

    def _begin(self, first_pass: int) -> None:
        self._first_pass = first_pass
        self._feeds = {name: Feed(task.provider.loader) for name, task in self.tasks.items()}
        self._planned = dict.fromkeys(self.tasks, 0.0)
        self._costs, self._by_hand, self._latest = {}, {}, {}
        self._chosen = None
        self._random = np.random.PCG64(self.seed)
        self.strategy.begin(self._facts())

    def on_pass(self, state: State) -> Way:
        """Put the batches of this pass on the state; end the threads of all tasks on the way out."""
        planned = plan(self.tasks, self.reference, state.pass_id + 1 - self._first_pass)
        last = self._drawn() + LONGEST * sum(plan(self.tasks, self.reference, 1).values())
        wait = Wait()
        for feed in self._feeds.values():
            feed.wait = wait
        draws = Draws(partial(self._left, planned), partial(self._draw, planned, last, state))
        state.batches = self._supply = Supply(state, wait, draws, self._place)
        try:
            yield
        finally:
            state.task = None
            with ExitStack() as closing:  # all of them, also where one fails to
                for feed in self._feeds.values():
                    closing.callback(feed.close)
        if not state.pass_cut:
            state.report(self._shares())

    def on_batch(self, state: State) -> Way:
        """Note the cost of the batch for its task; it is not read here."""
        yield
        if state.cost is not None and state.task is not None and state.step == state.next_step:
            cost = detached(state.cost)
            self._costs[state.task] = cost
            self.strategy.note(state.task, cost)

    def _left(self, planned: Mapping[str, int]) -> int:
        """Return how many batches this pass lacks, by the plan; 0 when every target has had its own."""
        lacking = {name: self._lacks(name, planned) for name in self.tasks}
        waits = any(lacking[name] for name, task in self.tasks.items() if task.target)
        return sum(lacking.values()) if waits else 0

    def _lacks(self, name: str, planned: Mapping[str, int]) -> int:
        return max(0, planned[name] - self._feeds[name].given)

    def _draw(self, planned: Mapping[str, int], last: int, state: State) -> Any:
        """Return a batch of the task whose turn it is, with its name on the state.

        A choice whose batch did not come is kept, and is not made again: the strategy and the generator have moved on.
        """
        if self._chosen is None:
            self._chosen = self._choose(planned, last)
        name = self._chosen
        batch = next(self._feeds[name])
        state.task, self._chosen = name, None
        return {**batch, "task": name} if isinstance(batch, dict) else batch

    def _choose(self, planned: Mapping[str, int], last: int) -> str:
        """Choose a task; ``last``: after so many batches a pass has no end."""
        if self._drawn() >= last:
            raise self._endless(planned)
        weights = self._weights([name for name in self.tasks if self._open(name, planned)])
        total = sum(weights.values())
        for name, weight in weights.items():
            self._planned[name] += weight / total
        return _pick(weights, total * self._chance())

    def _place(self) -> str:
        """Return where in the data the next batch is."""
        name = self._chosen
        return self.name if name is None else f"{self.name}, the task {name!r}, {self._feeds[name].place}"

    def wake(self, state: State) -> None:
        """End the wait for the next batch, as ``DataProvider.wake`` does."""
        if self._supply is not None:
            self._supply.wake(state)

    def _endless(self, planned: Mapping[str, int]) -> HookError:
        waiting = [name for name, task in self.tasks.items() if task.target and self._lacks(name, planned)]
        return HookError(
            f"{self.name}: this pass has drawn {LONGEST} times the batches that are planned for one, and still lacks "
            f"{self._lacks(waiting[0], planned)} of the target {waiting[0]!r}. {type(self.strategy).__name__} gives it "
            "too little weight: give it more, or make it auxiliary (target=False)."
        )

    def _drawn(self) -> int:
        return sum(feed.given for feed in self._feeds.values())

    def _open(self, name: str, planned: Mapping[str, int]) -> bool:
        """Tell whether a task may be drawn."""
        return self.finished == "sampled" or not self.tasks[name].target or self._lacks(name, planned) > 0

    def _weights(self, names: list[str]) -> dict[str, float]:
        """Return the strategy's weights of those tasks that have one."""
        step = self._drawn()
        given = self._latest = {**self.strategy.weights(step, names), **self._by_hand}
        weights = {name: given[name] for name in names if given.get(name, 0.0) > 0}
        if not weights:
            raise HookError(
                f"{self.name}: at step {step} {type(self.strategy).__name__} gave a weight to none of the tasks that "
                f"may be drawn ({', '.join(names)})."
            )
        return weights

    def set_weight(self, task: str, weight: float) -> None:
        """Go on with another weight of a task than the strategy gives it; a resumed run does too.

        Args:
            task: its name.
            weight: beside the weights of the other tasks, from 0.001 to 1000.

        Raises:
            OnionError: there is no such task, or the weight is out of range.
        """
        if task not in self.tasks:
            raise OnionError(f"{self.name} has no task {task!r}; it has {', '.join(self.tasks)}.")
        self._adjustable(task).refuse(f"the weight of {task!r}", weight)
        self._by_hand[task] = self._latest[task] = float(weight)

    def adjustable(self) -> dict[str, Adjustable]:
        """Return the weight of each task, as it was in the latest choice."""
        return {f"weight.{name}": self._adjustable(name) for name in self.tasks}

    def _adjustable(self, name: str) -> Adjustable:
        return Adjustable(1e-3, 1e3, lambda: float(self._latest.get(name, 1.0)), partial(self.set_weight, name))

    def _chance(self) -> float:
        # Of raw bits, not by numpy's Generator: that may draw otherwise in the version that resumes the run.
        return (int(self._random.random_raw()) >> 11) / 2**53

    # -- telling and saving -------------------------------------------------------------------------------------------

    def readings(self) -> dict[str, float]:
        """Return the examples handed out, the shares, and each task's latest cost, which waits for the device."""
        costs = {f"cost.{name}": float(cost) for name, cost in self._costs.items()}
        return {"examples": sum(feed.examples for feed in self._feeds.values()), **self._shares(), **costs}

    def _shares(self) -> dict[str, float]:
        drawn = self._drawn()
        if not drawn:
            return {}
        shares = {f"share.{name}": feed.given / drawn for name, feed in self._feeds.items()}
        return {**shares, **{f"planned_share.{name}": planned / drawn for name, planned in self._planned.items()}}

    def state_dict(self) -> dict[str, Any]:
        """Return the places in all data, the state of the choice and of the strategy, and what is told."""
        return {
            "generator": json.dumps(self._random.state),
            "strategy": json.dumps(self.strategy.state_dict()),
            "feeds": json.dumps({name: feed.state_dict() for name, feed in self._feeds.items()}),
            "first_pass": self._first_pass,
            "planned": json.dumps(self._planned),
            "chosen": self._chosen,
            "by_hand": json.dumps(self._by_hand),
            "costs": json.dumps({name: float(cost) for name, cost in self._costs.items()}),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take it all back.

        Raises:
            CheckpointError: it is of other tasks.
        """
        feeds = json.loads(saved["feeds"])
        if feeds.keys() != self.tasks.keys():
            raise CheckpointError(
                f"{self.name} was saved with the tasks {', '.join(feeds)}; here it has {', '.join(self.tasks)}."
            )
        self._begin(saved.get("first_pass", 0))
        for name, place in feeds.items():
            self._feeds[name].load_state_dict(place)
        self._random.state = json.loads(saved["generator"])
        self.strategy.load_state_dict(json.loads(saved["strategy"]))
        self._planned, self._costs = json.loads(saved["planned"]), json.loads(saved["costs"])
        self._chosen = saved.get("chosen")
        self._by_hand = json.loads(saved.get("by_hand", "{}"))
        self._resumed = True


def _pick(weights: Mapping[str, float], point: float) -> str:
    """Return the task on whose part of the line a point lies; the line has every weight side by side."""
    for name, weight in weights.items():  # noqa: B007 - the last stands where rounding leads beyond the end
        point -= weight
        if point < 0:
            break
    return name
