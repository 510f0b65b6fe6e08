"""Learning rates by task: whose update is made, and how many it has had (``onion.schedules.by_task``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onion.errors import CompositionError, HookError
from onion.schedules import ByTask

if TYPE_CHECKING:
    from onion.engine.item import RunnerItem
    from onion.engine.runner import Runner


def by_task_of(schedule: Any) -> ByTask | None:
    """Return the counts of a schedule whose rates are by task; None: they are not."""
    factor = getattr(schedule, "lr_lambda", None)
    return factor if isinstance(factor, ByTask) else None


def refuse_groups(schedule: Any, updater: RunnerItem, runner: Runner) -> None:
    """Refuse rates by task around an item that makes one update of several batches, which may be of several tasks.

    Raises:
        CompositionError: there is such an item inside the updater.
    """
    for item in runner.inside(updater) if by_task_of(schedule) else ():
        if item.extra_batches:
            raise CompositionError(
                f"{updater.name} has a learning rate for each task, but {item.name} makes one update of batches of "
                "several tasks; make the batches larger instead, or give the optimizer the schedule without by_task."
            )


def begin_update(schedule: Any, task: str | None, owner: str) -> None:
    """Let a schedule by task have the rate of the task that the update is of; ``owner`` has the schedule.

    Raises:
        HookError: the batch is of no task.
    """
    if (tasks := by_task_of(schedule)) is None:
        return
    if task is None:
        raise HookError(
            f"{owner}: the learning rate counts the updates of each task, but the batch is of none; provide the data "
            "by a TaskSampler, or give the optimizer the schedule without by_task."
        )
    tasks.task = task
    schedule.last_lr = schedule.get_lr()


def end_update(schedule: Any) -> None:
    """Step a schedule, after counting the update for its task if the rates are by task."""
    if (tasks := by_task_of(schedule)) is not None and tasks.task is not None:
        tasks.updates = {**tasks.updates, tasks.task: tasks.updates.get(tasks.task, 0) + 1}
    schedule.step()


def rates_by_task(schedule: Any) -> dict[str, float]:
    """Return the rate of the next update of each task so far; none if the rates are not by task."""
    tasks = by_task_of(schedule)
    return {} if tasks is None else {task: schedule.base_lr * tasks.of(task) for task in tasks.updates}
