"""Choose the code that computes an encoder's layers: a fast path if the batch and the layers allow it, else the layers.

Prediction: ``inference.py``. Training: ``training/``. Both are for the CPU and equal to the layers but for rounding.
"""

from __future__ import annotations

import paddle
from paddle import nn

from onion.models.fused.eligibility import plain_parts
from onion.models.fused.inference import lean, transform
from onion.models.fused.training import stack
from onion.models.layers import EncoderLayers
from onion.models.ops import on_cpu
from onion.models.packing import Packing


def run(
    layers: EncoderLayers,
    embedded: paddle.Tensor,
    packing: Packing,
    firsts_only: bool = False,
    recomputing: bool = False,
) -> tuple[paddle.Tensor, bool]:
    """Apply an encoder's layers to a batch, [tokens, hidden]; with ``recomputing``, they keep their inputs only.

    A list of layers with a ``forward`` of its own is called without ``recomputing``.

    Returns:
        [batch, hidden] of the first tokens and True, if only these will be read (``firsts_only``) and the last layer
        could be computed for them alone; else [tokens, hidden] and False.
    """
    firsts_only = firsts_only and on_cpu(embedded) and plain_parts(layers.layers[-1]) is not None
    weights = lean(layers, embedded)
    if weights is not None:
        return transform(weights, embedded, packing, firsts_only), firsts_only
    if _is_plain(layers) and stack.fits(layers.layers, embedded):
        return stack.run(layers.layers, embedded, packing, firsts_only, recomputing), firsts_only
    if recomputing and _has_our_forward(layers):
        return layers(embedded, packing, firsts_only, recomputing), firsts_only
    return layers(embedded, packing, firsts_only), firsts_only


def _is_plain(layers: nn.Layer) -> bool:
    """Return whether the list of layers has neither hooks nor another ``forward``."""
    hooked = layers._forward_pre_hooks or layers._forward_post_hooks
    return _has_our_forward(layers) and not hooked


def _has_our_forward(layers: nn.Layer) -> bool:
    return type(layers).forward is EncoderLayers.forward
