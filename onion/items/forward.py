"""The innermost ring of a test or inference onion: the network's forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from onion.device import paddle, to_tensors
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import BEHIND_DATA
from onion.engine.state import State
from onion.items.gradient_machine import LossFunction, refuse_fields


class Forward(RunnerItem):
    """Run the network in evaluation mode and without gradients; set ``state.outputs`` (and ``state.loss``).

    After the pass, also after an error, every layer has its previous mode, so a Tester can use the network that is
    being trained.

    Args:
        network: a ``paddle.nn.Layer`` that is called with the batch (numpy arrays converted to tensors).
        loss: ``loss(outputs, batch)``, for example ``network.loss``. Default: no loss, so batches need no labels.

    Raises:
        CompositionError: the network's ``forward`` takes more than the batch.
    """

    runs_network = True
    place_rules = (BEHIND_DATA,)

    def __init__(self, network: Any, loss: LossFunction | None = None) -> None:
        refuse_fields(network)
        self.network = network
        self.loss = loss

    def on_pass(self, state: State) -> HookIterator:
        """Switch to evaluation mode, and back after the pass."""
        with evaluating(self.network):
            yield

    def on_batch(self, state: State) -> None:
        """Compute the outputs, and the loss if there is a loss function."""
        with paddle().no_grad():
            batch = to_tensors(state.batch)
            state.outputs = self.network(batch)
            state.loss = None if self.loss is None else self.loss(state.outputs, batch)


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Put a network into evaluation mode; restore the mode of every layer on exit."""
    before = [(layer, layer.training) for layer in _layers(network)]
    _set_modes((layer, False) for layer, _ in before)
    try:
        yield
    finally:
        _set_modes(before)


def _set_modes(modes: Iterable[tuple[Any, bool]]) -> None:
    for layer, training in modes:
        if layer.training != training:  # setting an attribute of a Layer takes 3 microseconds
            layer.training = training


def _layers(network: Any) -> Iterator[Any]:
    """Yield a network and all its layers. ``sublayers()`` takes six times as long, which delays a single text."""
    yield network
    for layer in network._sub_layers.values():
        if layer is not None:
            yield from _layers(layer)
