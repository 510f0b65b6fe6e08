"""Whether a network's head takes the vectors that its encoder gives, found out before the first batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import paddle
from paddle import nn

from onion.checkpointing import rng
from onion.device import to_tensors
from onion.errors import CompositionError
from onion.items.forward import evaluating


def refuse_unfit(network: nn.Layer, called: str) -> None:
    """Refuse a network with a linear layer that gets the encoder's vectors and takes wider or narrower ones.

    The network runs once, on a text of one token, in evaluation mode and without gradients; random generators stay as
    they are. What cannot run on that (its batches have other fields, or more tokens) is let be, and so is a network
    whose encoder does not say how wide its vectors are (``config.hidden_size``).

    Args:
        network: with its encoder as ``encoder``.
        called: what the message calls it.

    Raises:
        CompositionError: there is such a layer; it is named, with both widths.
    """
    width = getattr(getattr(network.encoder, "config", None), "hidden_size", None)
    if width is None:
        return
    own = {id(layer) for layer in network.encoder.sublayers(include_self=True)}
    linear = [
        (path, layer)
        for path, layer in network.named_sublayers()
        if isinstance(layer, nn.Linear) and id(layer) not in own and layer.weight.shape[0] != width
    ]
    found: list[str] = []
    hooks = [layer.register_forward_pre_hook(_noting(path, width, found)) for path, layer in linear]
    try:
        if hooks:
            _run_once(network)
    finally:
        for hook in hooks:
            hook.remove()
    if found:
        wanted = dict(linear)[found[0]].weight.shape[0]
        raise CompositionError(
            f"{called} does not fit the encoder: {found[0]} takes vectors of {wanted} numbers, and the encoder's have "
            f"{width}."
        )


def _noting(path: str, width: int, found: list[str]) -> Callable[[nn.Layer, tuple[Any, ...]], None]:
    """Return a hook that notes a layer whose input is as wide as the encoder's vectors."""

    def note(layer: nn.Layer, inputs: tuple[Any, ...]) -> None:
        if inputs and list(inputs[0].shape)[-1:] == [width]:
            found.append(path)

    return note


def _run_once(network: nn.Layer) -> None:
    """Run a network on one token; what it has to say against that is not heard."""
    one = np.ones((1, 1), np.int64)
    batch = to_tensors({"input_ids": one, "token_type_ids": one * 0, "lengths": [1]})
    drawn = rng.capture()
    with evaluating(network), paddle.no_grad(), suppress(Exception):
        network(batch)
    rng.restore(drawn)
