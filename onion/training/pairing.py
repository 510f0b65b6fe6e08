"""Whether optimizers and networks belong together: which items are inside which, and which updater moves what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onion.engine.item import RunnerItem
from onion.errors import CompositionError

if TYPE_CHECKING:
    from onion.engine.runner import Runner


def machines_inside(item: RunnerItem, runner: Runner) -> list[RunnerItem]:
    """Return the gradient machines inside an item."""
    return [each for each in runner.inside(item) if each.computes_gradients]


def around(item: RunnerItem, runner: Runner) -> list[RunnerItem]:
    """Return the items around an item, the outermost first."""
    return list(runner.around(item))


def networks_of(machines: Sequence[RunnerItem]) -> list[tuple[str, Any]]:
    """Return the networks of gradient machines, each with its machine's name; a machine of one's own may have none."""
    return [(machine.name, machine.network) for machine in machines if machine.network is not None]


def parameters_of(optimizer: Any) -> list[Any]:
    """Return an optimizer's parameters, whether it was given a list or groups."""
    return [
        parameter
        for entry in optimizer._parameter_list or []
        for parameter in (entry["params"] if isinstance(entry, dict) else [entry])
    ]


def moves(updater: RunnerItem, network: Any) -> bool:
    """Tell whether an updater's optimizer has any parameter of a network."""
    ours = {id(parameter) for parameter in network.parameters()}
    return any(id(parameter) in ours for parameter in parameters_of(updater.optimizer))


def refuse_idle(updater: RunnerItem, machines: Sequence[RunnerItem]) -> None:
    """Raise CompositionError for an optimizer that has nothing to move."""
    if not hasattr(updater.optimizer, "_parameter_list"):  # no optimizer of Paddle's: what it moves is not seen
        return
    if not parameters_of(updater.optimizer):
        raise CompositionError(f"the optimizer of {updater.name} has no parameters; give it network.parameters().")
    # A loss function of the user's may have parameters of its own: they are seen nowhere.
    if all(_has_its_networks_loss(machine) for machine in machines) and not any(
        moves(updater, network) for _, network in networks_of(machines)
    ):
        told = ", ".join(_told(machine) for machine in machines)
        raise CompositionError(
            f"{updater.name} updates no parameter of {told}, which is inside it; give its optimizer the "
            "parameters of this same network (a copy has others)."
        )


def _has_its_networks_loss(machine: Any) -> bool:
    """Tell whether all that can learn from a machine are its network's parameters."""
    return machine.network is not None and getattr(machine, "loss", None) == getattr(machine.network, "loss", machine)


def refuse_unmoved(machine: RunnerItem, runner: Runner) -> None:
    """Raise CompositionError for a machine whose network learns, and that no updater around it moves."""
    outside = around(machine, runner)
    frozen = {id(parameter) for item in outside for parameter in item.frozen}
    network = machine.network
    learning = [] if network is None else [each for each in network.parameters() if not each.stop_gradient]
    updaters = [item for item in outside if item.optimizer is not None]
    seen = all(hasattr(updater.optimizer, "_parameter_list") for updater in updaters)
    if not seen or frozen.issuperset(map(id, learning)) or any(moves(updater, network) for updater in updaters):
        return
    raise CompositionError(
        f"no updater around {_told(machine)} updates its parameters: {', '.join(each.name for each in updaters)} "
        "has those of another network; give an optimizer the parameters of this one, or put "
        "StopGradient(network) around the machine if it should not be trained."
    )


def _told(machine: RunnerItem) -> str:
    return f"{machine.name} ({type(machine.network).__name__})"
