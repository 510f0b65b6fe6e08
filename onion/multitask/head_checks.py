"""Whether the networks inside a TaskSampler have a head for every task, and optimizers that move it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from onion.engine.item import RunnerItem
from onion.items.freeze import Freeze, matching
from onion.items.stop_gradient import StopGradient
from onion.training.microbatches import updaters_around
from onion.training.pairing import parameters_of

if TYPE_CHECKING:
    from onion.engine.runner import Runner


def complaints_of_heads(tasks: Collection[str], sampler: RunnerItem, runner: Runner) -> Iterator[str]:
    """Say which task no head is there for, or one that no optimizer around it has a parameter of.

    A network with heads says of which tasks (``tasks``), and which parameters are a head's (``own_parameters(task)``),
    as MultiHead does.
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
    """Tell whether a head is to learn, and no updater around its machine has any of it."""
    frozen = _parameters_under(Freeze, runner) | _parameters_under(StopGradient, runner)
    learning = {id(each) for each in head if not each.stop_gradient} - frozen
    updaters = updaters_around(machine, runner)
    moved = {id(each) for updater in updaters for each in parameters_of(updater.optimizer)}
    return bool(learning and updaters) and learning.isdisjoint(moved)


def _parameters_under(kind: type[Freeze] | type[StopGradient], runner: Runner) -> set[int]:
    """Return the parameters that items of a class freeze, by ``id``."""
    return {id(each) for item in runner.all(kind) for each in matching(item.network, item.pattern)}
