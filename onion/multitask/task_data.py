"""The tasks of a TaskSampler: their data, the planned number of batches, and the checks of both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import attrs

from onion.engine.item import RunnerItem
from onion.items.data_provider import DataProvider
from onion.items.freeze import Freeze, matching
from onion.items.stop_gradient import StopGradient
from onion.multitask.choice import LONGEST, never_finishes
from onion.multitask.strategies import Strategy, TaskInfo
from onion.training.microbatches import updaters_around
from onion.training.pairing import parameters_of
from onion.validation import is_number

if TYPE_CHECKING:
    from onion.engine.runner import Runner


@attrs.frozen
class TaskData:
    """The data of a task, and how much of it is used.

    Attributes:
        provider: the data, with batch size, order and prefetching. Its passes are independent of the run's: at the end
            of one it starts the next.
        mix_ratio: planned batches per batch of the reference task; above 0, at most 1e9. Default 1.
        target: whether a pass waits for the planned batches of this task; if not, it is auxiliary. Default True.
    """

    provider: DataProvider
    mix_ratio: float = 1.0
    target: bool = True

    @property
    def facts(self) -> TaskInfo:
        """The facts that strategies use."""
        return TaskInfo(self.mix_ratio, self.provider.loader.batches_per_pass)


def plan(tasks: Mapping[str, TaskData], reference: str | None, passes: int) -> dict[str, int]:
    """Return the planned batches of each task in a number of passes, by PALM's rule.

    Args:
        tasks: by name.
        reference: the task whose passes count; None: the first target.
        passes: counted from the first.
    """
    batches = tasks[reference or _first_target(tasks)].facts.batches or 0
    return {name: int(passes * task.mix_ratio * batches) for name, task in tasks.items()}


def complaints(tasks: Mapping[str, TaskData]) -> Iterator[str]:
    """Yield what is wrong with tasks; later checks assume that earlier ones found nothing."""
    if not tasks:
        yield "there are no tasks; give it some, {'name': Task(provider)}"
    for name, task in tasks.items():
        if not isinstance(name, str):
            yield f"the task {name!r} has a name of type {type(name).__name__}; use a string, {str(name)!r}"
        if not isinstance(task, TaskData) or not isinstance(task.provider, DataProvider):
            yield f"the task {name!r} has no data; give it a Task(DataProvider(...))"
        if not is_number(task.mix_ratio) or not 0 < task.mix_ratio <= 1e9:
            yield f"the mix_ratio of the task {name!r} is {task.mix_ratio!r}; it must be a number above 0, at most 1e9"


def complaints_of_passes(tasks: Mapping[str, TaskData], reference: str | None) -> Iterator[str]:
    """Yield what is wrong with the passes over a reference task, as ``complaints`` does."""
    if not any(task.target for task in tasks.values()):
        yield "all tasks are auxiliary, so a pass would never end; make one a target"
    yield from _complaints_of_plan(tasks, reference or _first_target(tasks))


def complaints_of_stages(tasks: Mapping[str, TaskData], reference: str | None) -> Iterator[str]:
    """Yield which settings have no meaning where a strategy gives the batches of each pass."""
    for name, task in tasks.items():
        if task.mix_ratio != 1:
            yield (
                f"the task {name!r} has the mix_ratio {task.mix_ratio}, but the stages of the strategy say how many "
                "batches it has; leave mix_ratio out"
            )
        if not task.target:
            yield (
                f"the task {name!r} is auxiliary, but every stage waits for all of its tasks; leave target=False out"
            )
    if reference is not None:
        yield f"reference={reference!r}, but a pass is a stage of the strategy; leave reference out"


def _complaints_of_plan(tasks: Mapping[str, TaskData], reference: str) -> Iterator[str]:
    if reference not in tasks:
        yield f"reference={reference!r} is not one of the tasks {', '.join(tasks)}"
    batches = tasks[reference].facts.batches
    if batches is None:
        yield (
            f"the reference task {reference!r} is a stream, whose pass has no known length; name another one "
            "(reference=...), or give it a list"
        )
    for name, planned in plan(tasks, reference, 1).items():
        # With one planned, every pass has a batch, whatever was drawn too often before.
        if tasks[name].target and planned < 1:
            yield (
                f"no batch of the target {name!r} is planned in a pass: mix_ratio={tasks[name].mix_ratio} of {batches} "
                f"batches of {reference!r} is below 1; raise it, or make the task auxiliary"
            )


def complaints_of_choice(strategy: Any, seed: Any, finished: Any) -> Iterator[str]:
    """Yield what is wrong with the choice of tasks, as ``complaints`` does."""
    if finished not in ("sampled", "stop"):
        yield f"finished={finished!r} is neither 'sampled' nor 'stop'"
    if not isinstance(seed, Integral):
        yield f"seed={seed!r} is not an integer"
    if seed < 0:
        yield f"seed={seed} is below 0"
    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        yield f"the strategy is the class {strategy.__name__}: write {strategy.__name__}(...)"
    if not isinstance(strategy, Strategy):
        yield f"the strategy is a {type(strategy).__name__}; use one of onion.multitask.strategies, such as Uniform()"


def endless_target(
    tasks: Mapping[str, TaskData], reference: str | None, strategy: Strategy, finished: str
) -> Iterator[str]:
    """Yield which target would never be finished, if any."""
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


# -- the networks inside the sampler --------------------------------------------------------------------------------


def complaints_of_heads(tasks: Collection[str], sampler: RunnerItem, runner: Runner) -> Iterator[str]:
    """Yield which task has no head, or a head without parameters in any optimizer.

    A network with heads has ``tasks`` and ``own_parameters(task)``, as MultiHead does.
    """
    for item in runner.inside(sampler):
        network = item.network
        heads = getattr(network, "tasks", tuple(tasks))
        for name in tasks:
            if name not in heads:
                yield (
                    f"it has the task {name!r}, for which the network of {item.name} has no head; it has "
                    f"{', '.join(heads)}"
                )
            if hasattr(network, "own_parameters") and _left_out(network.own_parameters(name), item, runner):
                yield (
                    f"no optimizer around {item.name} has a parameter of the head of the task {name!r}, which would "
                    "not learn; give it network.parameters(), or freeze the head (Freeze)"
                )


def _left_out(head: list[Any], machine: RunnerItem, runner: Runner) -> bool:
    """Return whether a head is trainable, and no updater around its machine has any of its parameters."""
    frozen = _parameters_under(Freeze, runner) | _parameters_under(StopGradient, runner)
    learning = {id(each) for each in head if not each.stop_gradient} - frozen
    updaters = updaters_around(machine, runner)
    moved = {id(each) for updater in updaters for each in parameters_of(updater.optimizer)}
    return bool(learning and updaters) and learning.isdisjoint(moved)


def _parameters_under(kind: type[Freeze] | type[StopGradient], runner: Runner) -> set[int]:
    """Return the ids of the parameters that items of a class freeze."""
    return {id(each) for item in runner.all(kind) for each in matching(item.network, item.pattern)}
