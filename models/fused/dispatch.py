"""Which code computes an encoder's layers: a fast path where the batch and the layers allow it, else the layers.

Prediction: ``inference.py``. Training: ``training/``. Both are for the CPU, and give the numbers of the layers but for
rounding.
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
    layers: EncoderLayers, embedded: paddle.Tensor, packing: Packing, firsts_only: bool = False
) -> tuple[paddle.Tensor, bool]:
    """Apply an encoder's layers to a batch.

    Args:
        layers: of an encoder.
        embedded: [tokens, hidden].
        packing: where the tokens stand.
        firsts_only: whether the first token of each row is all that will be read of the result.

    Returns:
        [batch, hidden] of the first tokens and True, where the last layer could be computed for these alone; else
        [tokens, hidden] and False.
    """
    firsts_only = firsts_only and on_cpu(embedded) and plain_parts(layers.layers[-1]) is not None
    weights = lean(layers, embedded)
    if weights is not None:
        return transform(weights, embedded, packing, firsts_only), firsts_only
    if _is_plain(layers) and stack.fits(layers.layers, embedded):
        return stack.run(layers.layers, embedded, packing, firsts_only), firsts_only
    return layers(embedded, packing, firsts_only), firsts_only


def _is_plain(layers: nn.Layer) -> bool:
    """Whether nobody wants that the list of layers itself is called: it has no hook and no forward of its own."""
    hooked = layers._forward_pre_hooks or layers._forward_post_hooks
    return type(layers).forward is EncoderLayers.forward and not hooked
