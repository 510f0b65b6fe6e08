"""The graph of BERT, RoBERTa, ERNIE and ELECTRA; ``onion.models.layers`` has the same for packed tokens."""

from __future__ import annotations

from functools import partial

import numpy as np

from onion.models.config import EncoderConfig
from onion.models.graphs.encoded import EncodedGraph, Inputs
from onion.models.graphs.operations import Operations, Value

MASKED = -1e9
"""Added to the scores of padded keys."""


def transformer(o: Operations, config: EncoderConfig, inputs: Inputs, prefix: str) -> EncodedGraph:
    """Build the graph; the paths of the parameters begin with ``prefix``."""
    x = _embedded(o, config, inputs, f"{prefix}embeddings.")
    if config.embedding_size != config.hidden_size:
        x = o.linear(x, f"{prefix}embeddings_project")
    bias = padding_bias(o, inputs.mask)
    for number in range(config.num_hidden_layers):
        x = _layer(o, config, x, bias, f"{prefix}encoder.layers.{number}.")
    return EncodedGraph(x, one_of_each_row(o, x, o.first(inputs.mask)), partial(_pool, o, config, f"{prefix}pooler."))


def padding_bias(o: Operations, mask: Value) -> Value:
    """Return what attention adds to its scores: float32 [batch, 1, 1, length], 0 for tokens."""
    return o.unsqueeze((o.as_float(mask) - 1.0) * -MASKED, 1, 2)


def one_of_each_row(o: Operations, x: Value, places: Value) -> Value:
    """[batch, length, width] and int64 [batch] -> [batch, width]."""
    return o.reshape(o.pick(x, o.unsqueeze(places, 1)), [0, -1])


def split_heads(o: Operations, x: Value, heads: int) -> Value:
    """[batch, length, hidden] -> [batch, heads, length, head size]."""
    return o.transpose(o.reshape(x, [0, 0, heads, -1]), [0, 2, 1, 3])


def merge_heads(o: Operations, x: Value, width: int) -> Value:
    """[batch, heads, length, head size] -> [batch, length, width]."""
    return o.reshape(o.transpose(x, [0, 2, 1, 3]), [0, 0, width])


def _embedded(o: Operations, config: EncoderConfig, inputs: Inputs, path: str) -> Value:
    table = f"{path}word_embeddings.weight"
    total = o.rows(o.weight(table), inputs.ids) + o.rows(
        o.weight(f"{path}position_embeddings.weight"), _positions(o, config, inputs)
    )
    if config.type_vocab_size:
        total = total + o.rows(o.weight(f"{path}token_type_embeddings.weight"), inputs.types)
    if config.tasks:
        total = total + o.constant(o.weights[f"{path}task_type_embeddings.weight"][config.task_id].astype(np.float32))
    return o.layer_norm(total, f"{path}layer_norm", config.layer_norm_eps)


def _positions(o: Operations, config: EncoderConfig, inputs: Inputs) -> Value:
    """Return the columns or, in RoBERTa, the offset plus the number of tokens before, int64."""
    if config.position_offset:
        return o.count_before(inputs.mask) + o.constant(np.array(config.position_offset, np.int64))
    return o.columns(inputs.ids)


def _layer(o: Operations, config: EncoderConfig, x: Value, bias: Value, path: str) -> Value:
    attention = f"{path}self_attn."
    size = config.head_size
    width = o.shape_of(f"{attention}q_proj.weight")[1]
    heads = width // size
    query = split_heads(o, o.linear(x, f"{attention}q_proj", size**-0.5), heads)
    key = o.transpose(o.reshape(o.linear(x, f"{attention}k_proj"), [0, 0, heads, size]), [0, 2, 3, 1])
    value = split_heads(o, o.linear(x, f"{attention}v_proj"), heads)
    mixed = merge_heads(o, o.softmax(query @ key + bias) @ value, width)
    x = o.layer_norm(o.linear(mixed, f"{attention}out_proj") + x, f"{path}norm1", config.layer_norm_eps)
    inner = o.activation(o.linear(x, f"{path}linear1"), config.hidden_act)
    return o.layer_norm(o.linear(inner, f"{path}linear2") + x, f"{path}norm2", config.layer_norm_eps)


def _pool(o: Operations, config: EncoderConfig, path: str, cls: Value) -> Value:
    return o.activation(o.linear(cls, f"{path}dense"), config.pool_act)
