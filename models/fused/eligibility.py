"""Whether a layer of the encoder is what it was made as, so that what it would compute may be computed elsewhere.

Who looks into a layer by a hook, or has put one of his own in the place of a part, wants that it is called.
"""

from __future__ import annotations

from typing import NamedTuple

from paddle import nn

from onion.models.layer_norm import LayerNorm
from onion.models.layers import EncoderLayer, Linear, SelfAttention


class Parts(NamedTuple):
    """What one encoder layer is made of."""

    layer: EncoderLayer
    attention: SelfAttention
    query: Linear
    key: Linear
    value: Linear
    out: Linear
    linear1: Linear
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm


KINDS = (EncoderLayer, SelfAttention, *[Linear] * 6, *[LayerNorm] * 2)


# Parts are looked up in Paddle's own dictionaries: a Layer that is asked for a part by its name searches for it, and a
# MiniLM has two hundred of them to ask for with every text.
def plain_parts(layer: nn.Layer) -> Parts | None:
    """Return the parts of an encoder layer; None where one is of another kind than it was, or has a hook."""
    if type(layer) is not EncoderLayer or type(attention := layer._sub_layers["self_attn"]) is not SelfAttention:
        return None
    inner = [attention._sub_layers[name] for name in ("q_proj", "k_proj", "v_proj", "out_proj")]
    outer = [layer._sub_layers[name] for name in ("linear1", "linear2", "norm1", "norm2")]
    parts = Parts(layer, attention, *inner, *outer)
    return parts if all(map(_is_plain, parts, KINDS)) else None


def _is_plain(part: nn.Layer, kind: type[nn.Layer]) -> bool:
    return type(part) is kind and not (part._forward_pre_hooks or part._forward_post_hooks)
