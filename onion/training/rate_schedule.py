"""The learning rate schedule of an optimizer, as a checkpoint has it."""

from __future__ import annotations

import inspect
import json
import logging
import warnings
from collections.abc import Mapping
from typing import Any

from onion.checkpointing.checkpoint import plain
from onion.device import paddle
from onion.errors import CheckpointError, CompositionError
from onion.schedules import Plan
from onion.training.task_rates import by_task_of
from onion.validation import wants_arguments

STATE, NUMBERS, PLAN, TASKS = "LR_Scheduler", "LR_Scheduler_numbers", "LR_Scheduler_plan", "LR_Scheduler_tasks"
KEYS = (STATE, NUMBERS, PLAN, TASKS)
"""What is saved, as JSON: what Paddle tells of a schedule, and what it passes over; the updates of a plan; those of
each task, and the latest task."""

log = logging.getLogger("onion")


def of(optimizer: Any) -> Any:
    """Return the schedule of an optimizer; None: its rate is a number.

    Raises:
        CompositionError: its ``step`` wants a metric (ReduceOnPlateau), which a batch has not.
    """
    rate: Any = getattr(optimizer, "_learning_rate", None)
    if not hasattr(rate, "step"):
        return None
    if wants_arguments(rate.step):
        raise CompositionError(
            f"ParameterUpdater steps a schedule once a batch, but {type(rate).__name__}.step requires a metric; give "
            "the optimizer a plain number, and set it (optimizer.set_lr) in an item that sees the metric."
        )
    return rate


def saved(schedule: Any) -> dict[str, str]:
    """Return what brings a schedule back to where it is."""
    state = {STATE: json.dumps(schedule.state_dict(), default=plain)}
    if numbers := _numbers(schedule):
        state[NUMBERS] = json.dumps(numbers)
    if (plan := plan_of(schedule)) and plan.steps is not None:
        state[PLAN] = json.dumps(plan.steps)
    if tasks := by_task_of(schedule):
        state[TASKS] = json.dumps([tasks.task, tasks.updates])
    return state


def refuse_other(schedule: Any | None, kept: Mapping[str, Any], owner: str) -> None:
    """Raise CheckpointError where another schedule was saved, or none; ``owner`` is who has the schedule."""
    if (STATE in kept) != (schedule is not None):
        has, lacks = ("checkpoint", "optimizer") if STATE in kept else ("optimizer", "checkpoint")
        raise CheckpointError(f"{owner}: the {has} has a learning rate schedule, but the {lacks} has none.")
    if schedule is not None and json.loads(kept[STATE]).keys() != schedule.state_dict().keys():
        raise CheckpointError(f"{owner}: the saved learning rate schedule is not a {type(schedule).__name__}.")
    if schedule is not None and (TASKS in kept) != (by_task_of(schedule) is not None):
        there, here = ("each task", "all") if TASKS in kept else ("all", "each task")
        raise CheckpointError(f"{owner}: the saved schedule counts the updates of {there}, and this one of {here}.")


def restore(schedule: Any, kept: Mapping[str, Any]) -> None:
    """Bring a schedule back."""
    with warnings.catch_warnings():  # Paddle's LinearWarmup finds its own state to hold something unused
        warnings.simplefilter("ignore", UserWarning)
        schedule.set_state_dict(json.loads(kept[STATE]))
    numbers, places = json.loads(kept.get(NUMBERS, "{}")), _places(schedule)
    for path in places.keys() & numbers.keys():
        owner, name = places[path]
        setattr(owner, name, numbers[path])
    if (plan := plan_of(schedule)) and PLAN in kept:  # checkpoints of before there were plans have none
        plan.set(json.loads(kept[PLAN]))
    if tasks := by_task_of(schedule):
        tasks.task, tasks.updates = json.loads(kept[TASKS])


def plan_of(schedule: Any) -> Plan | None:
    """Return the plan of a schedule over passes; None: it has none."""
    factor = getattr(schedule, "lr_lambda", None)
    return factor if isinstance(factor, Plan) else None


def plan_for(schedule: Any, steps: int, owner: str) -> None:
    """Let a schedule over passes have so many updates.

    If it was planned for another number, as in a run that resumes with other items or data, it continues at the same
    share of the whole, and this is logged; ``owner`` is the item that has the schedule.
    """
    plan = plan_of(schedule)
    if plan is None or plan.steps == steps:
        return
    before = plan.steps
    plan.set(steps)
    if before and schedule.last_epoch:
        schedule.last_epoch = round(schedule.last_epoch * steps / before)
        log.warning(
            "%s: the learning rate was planned for %d updates, and this runner makes %d; it continues as after %d",
            owner,
            before,
            steps,
            schedule.last_epoch,
        )
    schedule.last_lr = schedule.get_lr()


def set_peak(schedule: Any, rate: float) -> None:
    """Give a schedule of ``onion.schedules`` another peak."""
    schedule.base_lr = rate
    plan = plan_of(schedule)
    if plan is None or plan.steps is not None:  # else the rate is found when it is planned
        schedule.last_lr = schedule.get_lr()


def _numbers(schedule: Any) -> dict[str, int | float]:
    """Return the numbers of a schedule that Paddle's ``state_dict`` passes over, such as {"T_cur": 3, "T_i": 10}.

    A schedule within it has them too, as "learning_rate.T_cur". Settings stay those of the program: ``base_lr``, and
    what has the name of an argument.
    """
    told = schedule.state_dict()
    return {path: getattr(owner, name) for path, (owner, name) in _places(schedule).items() if path not in told}


def _places(schedule: Any) -> dict[str, tuple[Any, str]]:
    """Return where the numbers of a schedule stand, {path: (schedule, attribute)}."""
    settings = {"base_lr", *inspect.signature(type(schedule).__init__).parameters} - {"last_epoch"}
    found: dict[str, tuple[Any, str]] = {}
    for name, value in vars(schedule).items():
        if isinstance(value, paddle().optimizer.lr.LRScheduler):
            found |= {f"{name}.{path}": place for path, place in _places(value).items()}
        elif isinstance(value, int | float) and name not in settings:
            found[name] = (schedule, name)
    return found
