"""The innermost ring of a test or inference onion: forward only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from onion.device import paddle, to_tensors
from onion.item import RunnerItem, Way
from onion.items.gradient_machine import CostFunction
from onion.places import BEHIND_DATA
from onion.state import State


class Forward(RunnerItem):
    """Run the network in evaluation mode and without gradients; leave ``state.outputs`` (and ``state.cost``).

    Around a pass the network is in evaluation mode; afterwards every layer has the mode it had before, also after an
    error. So a tester can run this on the very network that is being trained.

    Args:
        network: a ``paddle.nn.Layer`` that is called with the batch (its numpy arrays turned into tensors).
        cost: ``cost(outputs, batch)`` where the batches have labels, for example ``network.cost``; default: no cost.
    """

    runs_network = True
    place_rules = (BEHIND_DATA,)

    def __init__(self, network: Any, cost: CostFunction | None = None) -> None:
        self.network = network
        self.cost = cost

    def on_pass(self, state: State) -> Way:
        """Switch to evaluation mode and back."""
        with evaluating(self.network):
            yield

    def on_batch(self, state: State) -> None:
        """Compute the outputs of the batch, and its cost if there is a cost function."""
        with paddle().no_grad():
            batch = to_tensors(state.batch)
            state.outputs = self.network(batch)
            state.cost = None if self.cost is None else self.cost(state.outputs, batch)


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Put a network into evaluation mode; afterwards every layer has the mode that it had before."""
    before = [(layer, layer.training) for layer in _layers(network)]
    _set_modes((layer, False) for layer, _ in before)
    try:
        yield
    finally:
        _set_modes(before)


def _set_modes(modes: Iterable[tuple[Any, bool]]) -> None:
    for layer, training in modes:
        if layer.training != training:  # to set an attribute of a Layer takes 3 microseconds
            layer.training = training


def _layers(network: Any) -> Iterator[Any]:
    """Give a network and all layers in it; ``sublayers()`` takes six times as long, and one text waits for it."""
    yield network
    for layer in network._sub_layers.values():
        if layer is not None:
            yield from _layers(layer)
