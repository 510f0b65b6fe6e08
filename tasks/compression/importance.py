"""How much each attention head and each neuron matters to the loss (DynaBERT, Hou et al. 2020, section 2.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import paddle
from paddle import nn

from onion import RunnerItem, State
from onion.engine.item import HookIterator
from onion.engine.placement import NETWORKS, Around
from onion.errors import CompositionError
from onion.items.forward import evaluating
from onion.models.narrowing import narrowable, sort_parts


class Importance(RunnerItem):
    """Measure the heads and neurons of an encoder by the gradients of some batches, and sort them.

        importance = Importance(network)
        Runner(DataProvider(...), importance, GradientMachine(network)).run(passes=1)
        importance.sort()  # what matters most comes first, where a narrowed encoder has it

    A head's importance is the absolute derivative of the loss by a factor of its output; a neuron's the first-order
    change of the loss if its weights were removed, of each of its two matrices. Both follow from the weights and their
    gradients, batch by batch, and are added up. There is no dropout meanwhile, no parameter moves, and the gradients
    are cleared.

    Args:
        network: a layer with an :class:`onion.models.encoder.Encoder` as ``encoder``.

    Attributes:
        heads: float64 ``[layers, heads]``.
        neurons: float64 ``[layers, neurons]``.

    Raises:
        CompositionError: the encoder is of another family, or no network is inside the item.
    """

    keep_for_inference = False
    place_rules = (Around(NETWORKS, "reads the gradients of the networks inside it"),)

    def __init__(self, network: nn.Layer) -> None:
        self.network, self._encoder = network, narrowable(network.encoder)
        self.reset()

    def reset(self) -> None:
        """Begin with nothing measured."""
        config = self._encoder.config
        self.heads = np.zeros([config.num_hidden_layers, config.num_attention_heads])
        self.neurons = np.zeros([config.num_hidden_layers, config.intermediate_size])

    def on_pass(self, state: State) -> HookIterator:
        """Compute without dropout."""
        with evaluating(self.network):
            yield

    def on_batch(self, state: State) -> HookIterator:
        """Add what the gradients of the batch tell, and clear them."""
        yield
        for number, layer in enumerate(self._encoder.encoder.layers):
            self.heads[number] += np.abs(_rows(layer.self_attn.out_proj.weight).reshape(self.heads.shape[1], -1).sum(1))
            into = _columns(layer.linear1.weight) + _products(layer.linear1.bias)
            self.neurons[number] += np.abs(into) + np.abs(_rows(layer.linear2.weight))
        for parameter in self.network.parameters():
            parameter.clear_gradient(False)

    def sort(self) -> None:
        """Sort the heads and neurons of each layer of the encoder, the most important ones first, and the figures too.

        What the network computes stays the same but for rounding.

        Raises:
            CompositionError: a layer has no figures, or some that are not finite.
        """
        for number, figures in enumerate(zip(self.heads, self.neurons, strict=True), start=1):
            if not all(np.isfinite(each).all() and each.any() for each in figures):
                raise CompositionError(
                    f"{self.name} has nothing to sort layer {number} by: run it first, over batches whose loss is "
                    "finite and has gradients, and an encoder that is not frozen"
                )
        heads, neurons = (np.argsort(-each, axis=1, kind="stable") for each in (self.heads, self.neurons))
        sort_parts(self._encoder, list(heads), list(neurons))
        self.heads = np.take_along_axis(self.heads, heads, 1)
        self.neurons = np.take_along_axis(self.neurons, neurons, 1)

    def state_dict(self) -> dict[str, Any]:
        """Return what was measured."""
        return {"heads": self.heads, "neurons": self.neurons}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what was measured."""
        self.heads, self.neurons = (np.array(saved[name]) for name in ("heads", "neurons"))


def _products(parameter: paddle.Tensor) -> np.ndarray:
    """Return each weight times its gradient, float64; zeros, if there is none."""
    if parameter.grad is None:
        return np.zeros(parameter.shape)
    products: np.ndarray = parameter.numpy().astype(np.float64) * parameter.grad.numpy()
    return products


def _rows(parameter: paddle.Tensor) -> np.ndarray:
    sums: np.ndarray = _products(parameter).sum(axis=1)
    return sums


def _columns(parameter: paddle.Tensor) -> np.ndarray:
    sums: np.ndarray = _products(parameter).sum(axis=0)
    return sums
