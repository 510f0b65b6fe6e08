"""The innermost ring of a training onion: forward, cost, backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from onion.device import to_tensors
from onion.errors import CheckpointError, CompositionError
from onion.item import RunnerItem
from onion.places import BEHIND_DATA
from onion.state import State
from onion.way_back import explained, once

CostFunction: TypeAlias = Callable[[Any, Any], Any]
"""(outputs, batch of tensors) -> the cost, a scalar tensor."""


class GradientMachine(RunnerItem):
    """Run the network forward and backward on the way in; leave ``state.outputs`` and ``state.cost``.

    It goes back once, which networks may rely on (:mod:`onion.way_back`): a network, cost or hook that itself goes back
    over what the machine goes back over computes that within ``onion.way_back.many`` (docs/guards.md).

    Args:
        network: a ``paddle.nn.Layer`` that is called with the batch (its numpy arrays turned into tensors).
        cost: ``cost(outputs, batch)``; default: the network's own method ``cost``.

    Raises:
        CompositionError: there is no cost function.
    """

    makes_gradients = True
    place_rules = (BEHIND_DATA,)

    def __init__(self, network: Any, cost: CostFunction | None = None) -> None:
        if cost is None and not callable(getattr(network, "cost", None)):
            raise CompositionError(
                f"GradientMachine has no cost: give {type(network).__name__} a method cost(outputs, batch), "
                "or pass GradientMachine(network, cost=function)."
            )
        self.network = network
        self.cost: CostFunction = cost or network.cost

    def initialize(self, state: State) -> None:
        """Put the network into training mode."""
        self.network.train()

    def on_batch(self, state: State) -> None:
        """Compute outputs, cost and gradients of the batch."""
        batch = to_tensors(state.batch)
        with explained:
            with once:
                state.outputs = self.network(batch)
                state.cost = cost = self.cost(state.outputs, batch)
            (cost if state.share == 1 else cost * state.share).backward()

    def state_dict(self) -> dict[str, Any]:
        """Return the network's parameters and buffers by their paths in it; one that has several is there once."""
        return saved_network(self.network)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Put saved parameters and buffers back.

        Raises:
            CheckpointError: names or shapes differ from the network's; the network is unchanged.
        """
        load_network(self.network, saved)


def saved_network(network: Any) -> dict[str, Any]:
    """Return a network's parameters and buffers by path; what stands in several places is there once, by its first."""
    own = network.state_dict()
    return {paths[0]: own[paths[0]] for paths in _paths(own)}


def load_network(network: Any, saved: Mapping[str, Any]) -> None:
    """Set every parameter and buffer of a network from arrays by path, all or none (see GradientMachine).

    What stands in several places of the network may be saved by any of its paths, or by all.
    """
    own = network.state_dict()
    wrong = [f"{paths[0]} is missing" for paths in _paths(own) if saved.keys().isdisjoint(paths)]
    wrong += [f"{name} is unknown to the network" for name in saved.keys() - own.keys()]
    wrong += [
        f"{name} is {array_kind(saved[name])}, the network's is {array_kind(own[name])}"
        for name in own.keys() & saved.keys()
        if array_kind(saved[name]) != array_kind(own[name])
    ]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise CheckpointError(f"the saved network does not fit: {'; '.join(sorted(wrong)[:5])}{more}.")
    for name in own.keys() & saved.keys():
        own[name].set_value(saved[name])


def _paths(own: Mapping[str, Any]) -> list[list[str]]:
    """Return the paths of each tensor; two layers that hold one tensor give it two."""
    paths: dict[int, list[str]] = {}
    for path, tensor in own.items():
        paths.setdefault(id(tensor), []).append(path)
    return list(paths.values())


def array_kind(array: Any) -> str:
    """Describe type and shape. numpy has no bfloat16, Paddle hands it out as uint16."""
    dtype = str(array.dtype).removeprefix("paddle.").replace("uint16", "bfloat16")
    return f"{dtype} {list(array.shape)}"
