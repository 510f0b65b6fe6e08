"""What is exported: a graph with named inputs and outputs, whoever carries it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from onion.models.graphs.encoded import EncodedGraph, Inputs
from onion.models.graphs.encoders import encoder_graph, reads_types
from onion.models.graphs.operations import Operations, Value
from onion.models.pretrained_config import PretrainedConfig
from onion.models.words.config import WordsConfig
from onion.tasks.embedding.names import CLS, POOLER
from onion.tasks.embedding.pooling import Pooling
from onion.tasks.export.heads import network_graph
from onion.tasks.export.names import IDS, LOGITS, MASK, POSITIONS, SENTENCE, TOKENS, TYPES
from onion.tasks.task import MASKED_TOKENS, TOKEN_VECTORS, Task

BATCH, LENGTH, MASKED = "batch", "length", "masked"
"""Names of dimensions of any length."""


@attrs.frozen
class ExportedGraph:
    """A graph to be exported.

    Its inputs are int64 ``[batch, length]`` of any size: ``input_ids``, ``attention_mask`` (1 for tokens, anywhere in a
    row) and, if the encoder has segments, ``token_type_ids``; for a head over masked tokens also ``masked_positions``,
    int64 ``[masked]``, their positions in the flattened batch.

    Attributes:
        inputs: their names, in this order.
        outputs: name -> shape of each output, float32.
        build: makes the outputs of the inputs by name.
    """

    inputs: tuple[str, ...]
    outputs: Mapping[str, Sequence[str | int]]
    build: Callable[[Operations, Mapping[str, Value]], Sequence[Value]]

    def input_shape(self, name: str) -> list[str]:
        """Return the names of an input's dimensions."""
        return [MASKED] if name == POSITIONS else [BATCH, LENGTH]


def graph_of_task(task: Task, config: PretrainedConfig) -> ExportedGraph:
    """Return the graph of a task's network, whose output is ``logits``; see ``heads.network_graph``.

    Args:
        task: of the network.
        config: of its encoder.

    Raises:
        DataError: the task cannot be exported.
        WeightsError: the encoder has no graph.
    """
    before = {MASKED_TOKENS: [MASKED], TOKEN_VECTORS: [BATCH, LENGTH]}.get(task.head_over or "", [BATCH])

    def build(o: Operations, given: Mapping[str, Value]) -> list[Value]:
        return [network_graph(o, task, config, batch_of(given), given.get(POSITIONS))]

    return ExportedGraph(input_names(config, task.head_over), {LOGITS: [*before, "outputs"]}, build)


def graph_of_encoder(config: PretrainedConfig, pooling: Pooling) -> ExportedGraph:
    """Return the graph of an encoder.

    Its outputs are ``sentence_embedding``, float32 ``[batch, hidden]``, a vector of each text, and, if the encoder has
    vectors of tokens, ``last_hidden_state``, float32 ``[batch, length, hidden]``, of no meaning for padding.

    Args:
        config: of the encoder, which has as many layers as are computed.
        pooling: how the vector of a text is made.

    Raises:
        WeightsError: the encoder has no graph.
    """
    width = config.hidden_size
    has_tokens = not isinstance(config, WordsConfig)

    def build(o: Operations, given: Mapping[str, Value]) -> list[Value]:
        inputs = batch_of(given)
        encoded = encoder_graph(o, config, inputs, "")
        vectors = _pooled(o, encoded, inputs.mask, pooling.pooling)
        found = [o.unit(vectors) if pooling.normalize else vectors]
        return [*found, encoded.tokens] if has_tokens else found

    outputs: dict[str, Sequence[str | int]] = {SENTENCE: [BATCH, width]}
    if has_tokens:
        outputs[TOKENS] = [BATCH, LENGTH, width]
    return ExportedGraph(input_names(config), outputs, build)


def _pooled(o: Operations, encoded: EncodedGraph, mask: Value, pooling: str) -> Value:
    if pooling == POOLER:
        return encoded.pooled
    if pooling == CLS or encoded.tokens is None:
        return encoded.cls
    there = o.unsqueeze(o.as_float(mask), 2)
    return o.sum(encoded.tokens * there, 1) / o.sum(there, 1)


def batch_of(given: Mapping[str, Value]) -> Inputs:
    """Return the inputs of an encoder among those of a graph."""
    return Inputs(given[IDS], given.get(TYPES), given[MASK])


def input_names(config: PretrainedConfig, head_over: str | None = None) -> tuple[str, ...]:
    """Return the names of the inputs of a graph, in its order."""
    types = (TYPES,) if reads_types(config) else ()
    positions = (POSITIONS,) if head_over == MASKED_TOKENS else ()
    return (IDS, MASK, *types, *positions)
