"""The graphs of the encoders of words; ``onion.models.words`` has the same."""

from __future__ import annotations

import numpy as np

from onion.models.graphs.encoded import EncodedGraph, Inputs
from onion.models.graphs.operations import Operations, Value
from onion.models.words.config import FILTER, WordsConfig
from onion.models.words.names import BOW, CNN, FIRST_WORD


def words(o: Operations, config: WordsConfig, inputs: Inputs, prefix: str) -> EncodedGraph:
    """Build the graph; the paths of the parameters begin with ``prefix``."""
    there = inputs.mask * o.as_integer(o.at_least(inputs.ids, FIRST_WORD))
    vector = _vector(o, config, inputs.ids, there * _of_side(o, config, inputs, 0), prefix)
    if config.pairs:
        other = _vector(o, config, inputs.ids, there * _of_side(o, config, inputs, 1), prefix)
        parts = [vector, other, o.activation(vector - other, "abs"), vector * other]
        vector = o.concatenate(parts, 1)
    if config.dense_input:
        vector = o.activation(o.linear(vector, f"{prefix}dense"), "tanh")
    return EncodedGraph(None, vector, lambda cls: cls)


def _of_side(o: Operations, config: WordsConfig, inputs: Inputs, side: int) -> Value:
    """Return which tokens belong to a text of the pair; to the only text, all: int64."""
    if not config.pairs:
        return o.constant(np.array(1, np.int64))
    return o.as_integer(o.equal(inputs.types, o.constant(np.array(side, np.int64))))


def _vector(o: Operations, config: WordsConfig, ids: Value, chosen: Value, prefix: str) -> Value:
    """Return the vector of one text of each row, from the words that are chosen (int64, 1 or 0)."""
    table = o.weight(f"{prefix}embeddings.weight")
    if config.model_type == BOW:
        embedded = o.rows(table, ids) * o.unsqueeze(o.as_float(chosen), 2)
        return o.activation(o.sum(embedded, 1), "softsign")
    order = o.descending(_keys(o, ids, chosen))  # words first, each in its order
    mask = o.pick(o.unsqueeze(o.as_float(chosen), 2), order)
    embedded = o.pick(o.rows(table, ids), order) * mask
    if config.model_type == CNN:
        filtered = o.activation(o.convolve(embedded, f"{prefix}convolution", FILTER // 2), "relu") * mask
        return o.activation(o.maximum(filtered, 1), "softsign")
    lengths = o.as_integer(o.bounded(o.as_float(o.sum(chosen, 1)), 1.0, float(1 << 24)))
    return o.lstm(embedded, lengths, f"{prefix}lstm")


def _keys(o: Operations, ids: Value, chosen: Value) -> Value:
    """Return distinct numbers, larger for words than for others, and falling along a row."""
    columns = o.unsqueeze(o.columns(ids), 0)
    return chosen * o.constant(np.array(1 << 24, np.int64)) - columns
