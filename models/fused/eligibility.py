"""Check that a layer of the encoder is unchanged, so that its output may be computed elsewhere.

A layer with a hook, or with a replaced part, has to be called.
"""

from __future__ import annotations

from typing import NamedTuple

from paddle import nn

from onion.models.adapter import Adapter
from onion.models.layers import EncoderLayer, Linear, SelfAttention
from onion.models.ops import LayerNorm


class Parts(NamedTuple):
    """The parts of an encoder layer."""

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


# Parts are looked up in Paddle's dictionaries: attribute access of a Layer is slow, and a MiniLM has two hundred parts.
def plain_parts(layer: nn.Layer) -> Parts | None:
    """Return the parts of an encoder layer; None if one has another type or a hook."""
    if type(layer) is not EncoderLayer or type(attention := layer._sub_layers["self_attn"]) is not SelfAttention:
        return None
    inner = [attention._sub_layers[name] for name in ("q_proj", "k_proj", "v_proj", "out_proj")]
    outer = [layer._sub_layers[name] for name in ("linear1", "linear2", "norm1", "norm2")]
    parts = Parts(layer, attention, *inner, *outer)
    return parts if all(map(_is_plain, parts, KINDS)) else None


def adapters(parts: Parts) -> list[Adapter]:
    """Return the adapters of the linear layers among the parts."""
    return [part.weight_lora for part in parts if type(part) is Linear and part.weight_lora is not None]


def _is_plain(part: nn.Layer, kind: type[nn.Layer]) -> bool:
    if type(part) is not kind or part._forward_pre_hooks or part._forward_post_hooks:
        return False
    adapter = part._sub_layers.get("weight_lora") if kind is Linear else None
    return adapter is None or _is_plain(adapter, Adapter)
