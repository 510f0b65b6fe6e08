"""The tasks of a TaskSampler: their data, how much of it is planned, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

import attrs

from onion.items.data_provider import DataProvider
from onion.multitask.strategies import Strategy, TaskInfo
from onion.multitask.strategies.termination import LONGEST, never_finishes
from onion.validation import is_number


@attrs.frozen
class TaskData:
    """The data of a task, and how much of it is wanted.

    Attributes:
        provider: its data; the size of its batches, their order and the thread that prepares them are as it says. Its
            passes are its own: when it is through, it begins the next one.
        mix_ratio: how many batches are planned for each one in a pass of the reference task; above 0, at most 1e9.
            Default 1.
        target: whether a pass waits until the plan of this task is fulfilled; if not, it is an auxiliary task. Default
            True.
    """

    provider: DataProvider
    mix_ratio: float = 1.0
    target: bool = True

    @property
    def facts(self) -> TaskInfo:
        """What a strategy is told."""
        return TaskInfo(self.mix_ratio, self.provider.loader.batches_per_pass)


def plan(tasks: Mapping[str, TaskData], reference: str | None, passes: int) -> dict[str, int]:
    """Return how many batches of each task are planned in so many passes, by PALM's rule.

    Args:
        tasks: by name.
        reference: the task whose passes count; None: the first target.
        passes: from the beginning.
    """
    batches = tasks[reference or _first_target(tasks)].facts.batches or 0
    return {name: int(passes * task.mix_ratio * batches) for name, task in tasks.items()}


def complaints(tasks: Mapping[str, TaskData], reference: str | None) -> Iterator[str]:
    """Say what is wrong with tasks, the most basic first; what follows takes for granted that it is not."""
    if not tasks:
        yield "there are no tasks; give it some, {'name': Task(provider)}"
    for name, task in tasks.items():
        if not isinstance(name, str):
            yield f"the task {name!r} has a {type(name).__name__} for a name; write it as a text, {str(name)!r}"
        if not isinstance(task, TaskData) or not isinstance(task.provider, DataProvider):
            yield f"the task {name!r} has no data; give it a Task(DataProvider(...))"
        if not is_number(task.mix_ratio) or not 0 < task.mix_ratio <= 1e9:
            yield f"the mix_ratio of the task {name!r} is {task.mix_ratio!r}; it is a number above 0, at most 1e9"
    if not any(task.target for task in tasks.values()):
        yield "all tasks are auxiliary, so a pass would never end; make one a target"
    yield from _complaints_of_plan(tasks, reference or _first_target(tasks))


def _complaints_of_plan(tasks: Mapping[str, TaskData], reference: str) -> Iterator[str]:
    if reference not in tasks:
        yield f"reference={reference!r} is none of the tasks {', '.join(tasks)}"
    batches = tasks[reference].facts.batches
    if batches is None:
        yield (
            f"the reference task {reference!r} is a stream, whose pass has no known length; name another one "
            "(reference=...), or give it a list"
        )
    for name, planned in plan(tasks, reference, 1).items():
        # Where one is planned, every pass has a batch, whatever was drawn too often before.
        if tasks[name].target and planned < 1:
            yield (
                f"of the target {name!r} not one batch is planned in a pass, as mix_ratio={tasks[name].mix_ratio} of "
                f"{batches} batches of {reference!r} is less; give it more, or make it auxiliary"
            )


def complaints_of_choice(strategy: Any, seed: Any, finished: Any) -> Iterator[str]:
    """Say what is wrong with how the task of a batch is chosen, as ``complaints`` does."""
    if finished not in ("sampled", "stop"):
        yield f"finished={finished!r} is neither 'sampled' nor 'stop'"
    if not isinstance(seed, Integral):
        yield f"seed={seed!r} is no whole number"
    if seed < 0:
        yield f"seed={seed} is below 0"
    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        yield f"the strategy is the class {strategy.__name__}: write {strategy.__name__}(...)"
    if not isinstance(strategy, Strategy):
        yield f"the strategy is a {type(strategy).__name__}; use one of onion.multitask.strategies, such as Uniform()"


def endless_target(
    tasks: Mapping[str, TaskData], reference: str | None, strategy: Strategy, finished: str
) -> Iterator[str]:
    """Say which target would never be finished, if one would not."""
    planned = plan(tasks, reference, 1)
    facts = {name: task.facts for name, task in tasks.items()}
    targets = [name for name, task in tasks.items() if task.target]
    if name := never_finishes(strategy, facts, planned, targets, finished == "stop"):
        yield (
            f"{type(strategy).__name__} would not finish the target {name!r} (batches in a pass: {planned[name]}) in "
            f"{LONGEST} times the {sum(planned.values())} batches that are planned for a pass; give it more weight, or "
            "make it auxiliary (target=False)"
        )


def _first_target(tasks: Mapping[str, TaskData]) -> str:
    return next(name for name, task in tasks.items() if task.target)
