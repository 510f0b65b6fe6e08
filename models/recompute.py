"""Gradient checkpointing: a layer keeps its input only, and is computed again in the backward pass (Chen et al. 2016).

The fused layers for training on the CPU do the same by themselves (fused/training/stack.py).
"""

from __future__ import annotations

import sys
from typing import Any

import paddle
from paddle import nn
from paddle.distributed.fleet.utils import recompute

from onion.engine.backward import REMEDY, is_once, refuse, refuse_more, running_call

WHICH = "layers that are recomputed (gradient checkpointing)"


def call(layer: nn.Layer, x: paddle.Tensor, *others: Any) -> paddle.Tensor:
    """Return ``layer(x, *others)``, of which only ``x`` is kept until the layer is computed again.

    Random generators are as they were in the first computation, so dropout is the same, and so is each gradient, to the
    bit. A hook of the layer or of its parts runs in both.

    There must be a single backward pass (:mod:`onion.engine.backward`), because a second one through the layer ends the
    process (Paddle 3.3.1). A GradientMachine guarantees it; otherwise the layer keeps everything.

    Args:
        layer: the layer.
        x: its input.
        others: further arguments, which need no gradient.
    """
    learns = not x.stop_gradient or any(not parameter.stop_gradient for parameter in layer.parameters())
    if not (learns and is_once() and paddle.is_grad_enabled() and paddle.in_dynamic_mode()):
        return layer(x, *others)
    if x.stop_gradient:  # frozen embeddings; Paddle goes back only through what has an input with a gradient
        x = x.detach()
        x.stop_gradient = False
    out = recompute(layer, x, *others)
    out.register_hook(_refuse_other_ways_back)
    return out


def _refuse_other_ways_back(gradient: paddle.Tensor) -> None:
    """Raise an OnionError for a backward pass that Paddle's recomputation does not support."""
    backward = running_call(sys._getframe(1))
    refuse_more(backward, WHICH)
    if "inputs" in backward:  # an argument of paddle.grad, whose gradients would end up in every parameter
        refuse(f"paddle.grad is not supported by {WHICH}; {REMEDY}")
