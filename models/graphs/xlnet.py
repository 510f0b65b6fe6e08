"""The graph of XLNet's content stream; ``onion.models.xlnet`` has the same for packed tokens."""

from __future__ import annotations

from functools import partial

import numpy as np

from onion.models.graphs.encoded import EncodedGraph, Inputs
from onion.models.graphs.operations import Operations, Value
from onion.models.graphs.transformer import merge_heads, one_of_each_row, padding_bias, split_heads
from onion.models.xlnet.config import XLNetConfig


def xlnet(o: Operations, config: XLNetConfig, inputs: Inputs, prefix: str) -> EncodedGraph:
    """Build the graph; the paths of the parameters begin with ``prefix``."""
    length = o.length(inputs.ids)
    bias, distances = padding_bias(o, inputs.mask), _distance_encodings(o, config, inputs.ids)
    of_query = o.unsqueeze(inputs.types, 1, 3)
    same = o.equal(of_query, o.transpose(of_query, [0, 1, 3, 2]))
    other_segment = o.as_float(same) * -1.0 + 1.0
    x = o.rows(o.weight(f"{prefix}word_embedding.weight"), inputs.ids)
    for number in range(config.num_hidden_layers):
        path = f"{prefix}layer.{number}."
        x = _attention(o, config, x, bias, distances, other_segment, length, f"{path}rel_attn.")
        x = _feed_forward(o, config, x, f"{path}ff.")
    return EncodedGraph(x, one_of_each_row(o, x, o.last(inputs.mask)), partial(_pool, o, f"{prefix}pooler."))


def _distance_encodings(o: Operations, config: XLNetConfig, ids: Value) -> Value:
    """Return sines and cosines of the distances from the length down to 1 - length: float32 [2 * length, hidden]."""
    length = o.as_float(o.length(ids))
    down = o.as_float(o.columns(ids)) * -1.0
    distances = o.concatenate([down + length, down], 0)
    if config.clamp_len > 0:
        distances = o.bounded(distances, -config.clamp_len, config.clamp_len)
    frequencies = 1 / np.power(10000, np.arange(0, config.hidden_size, 2, dtype=np.float32) / config.hidden_size)
    # The angles of the cosines, which are even, have the other sign: in a program of Paddle 3.3's, sine and cosine of
    # one value share its memory, and the cosine is that of the sine.
    angles, opposite = (
        o.unsqueeze(distances, 1) * o.constant((sign * frequencies).astype(np.float32)) for sign in (1, -1)
    )
    return o.concatenate([o.activation(angles, "sin"), o.activation(opposite, "cos")], 1)


def _attention(
    o: Operations,
    config: XLNetConfig,
    x: Value,
    bias: Value,
    distances: Value,
    other_segment: Value,
    length: Value,
    path: str,
) -> Value:
    heads, size = config.num_attention_heads, config.head_size
    scale = size**-0.5

    def biased(name: str) -> Value:
        return query + o.reshape(o.weight(f"{path}{name}", scale), [1, heads, 1, size])

    query = split_heads(o, o.matmul(x, o.weight(f"{path}q", scale)), heads)
    key = o.transpose(o.reshape(o.matmul(x, o.weight(f"{path}k")), [0, 0, heads, size]), [0, 2, 3, 1])
    value = split_heads(o, o.matmul(x, o.weight(f"{path}v")), heads)
    distance_keys = o.transpose(
        o.reshape(o.matmul(distances, o.weight(f"{path}r")), [1, -1, heads, size]), [0, 2, 3, 1]
    )
    segments = o.weights[f"{path}seg_embed"]
    segment = o.constant(np.ascontiguousarray((segments[1] - segments[0]).astype(np.float32)[None, :, :, None]))
    scores = biased("r_w_bias") @ key
    scores = scores + _shifted(o, biased("r_r_bias") @ distance_keys, heads, length)
    scores = scores + (biased("r_s_bias") @ segment) * other_segment + bias
    mixed = merge_heads(o, o.softmax(scores) @ value, config.hidden_size)
    attended = o.matmul(mixed, o.transpose(o.weight(f"{path}o"), [1, 0]))
    return o.layer_norm(attended + x, f"{path}layer_norm", config.layer_norm_eps)


def _shifted(o: Operations, x: Value, heads: int, length: Value) -> Value:
    """Convert products with keys of distances to products with keys of tokens.

    [batch, heads, length, 2 * length] -> [batch, heads, length, length]; see
    ``onion.models.xlnet.attention.relative_shift``.
    """
    halves = o.slice(o.reshape(x, [0, heads, -1, length]), 2, 1)  # [batch, heads, 2 * length - 1, length]
    return o.slice(o.reshape(halves, [0, heads, length, -1]), 3, 0, length)


def _feed_forward(o: Operations, config: XLNetConfig, x: Value, path: str) -> Value:
    inner = o.activation(o.linear(x, f"{path}layer_1"), config.hidden_act)
    return o.layer_norm(o.linear(inner, f"{path}layer_2") + x, f"{path}layer_norm", config.layer_norm_eps)


def _pool(o: Operations, path: str, cls: Value) -> Value:
    return o.activation(o.linear(cls, f"{path}dense"), "tanh")
