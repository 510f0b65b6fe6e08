"""The graph of a task's network: an encoder and a head."""

from __future__ import annotations

from collections.abc import Callable

from onion.errors import DataError
from onion.models.config import EncoderConfig
from onion.models.graphs.encoded import EncodedGraph, Inputs
from onion.models.graphs.encoders import encoder_graph
from onion.models.graphs.operations import Operations, Value
from onion.models.pretrained_config import PretrainedConfig
from onion.tasks.networks.paths import ENCODER
from onion.tasks.task import MASKED_TOKENS, TEXT_VECTOR, TOKEN_VECTORS, Task

LAYER = "classifier"
"""The path of the linear layer of a head over texts or tokens."""

WORDS = "cls.predictions."
"""What the paths of the head over masked tokens begin with."""


def network_graph(
    o: Operations, task: Task, config: PretrainedConfig, inputs: Inputs, masked: Value | None = None
) -> Value:
    """Build the graph of a task's network; return its logits.

    Args:
        o: carries out the operations; has the network's parameters.
        task: its ``head_over`` tells which head.
        config: of the encoder.
        inputs: a padded batch.
        masked: for a head over masked tokens, their positions in the flattened batch, int64 [masked].

    Returns:
        float32 [batch, outputs]; over the vectors of tokens [batch, length, outputs], of no meaning for padding; over
        masked tokens [masked, vocabulary].

    Raises:
        DataError: the task does not say which head it has.
        WeightsError: the encoder has no graph.
    """
    if task.head_over not in HEADS:
        raise DataError(
            f"the task {task.name} cannot be exported: it does not say what its head is over (Task.head_over), "
            f"one of {', '.join(map(str, HEADS))}"
        )
    return HEADS[task.head_over](o, config, encoder_graph(o, config, inputs, ENCODER), masked)


def _over_text(o: Operations, config: PretrainedConfig, encoded: EncodedGraph, masked: Value | None) -> Value:
    return o.linear(encoded.pooled, LAYER)


def _over_tokens(o: Operations, config: PretrainedConfig, encoded: EncodedGraph, masked: Value | None) -> Value:
    return o.linear(encoded.tokens, LAYER)


def _over_masked_tokens(o: Operations, config: PretrainedConfig, encoded: EncodedGraph, masked: Value | None) -> Value:
    assert isinstance(config, EncoderConfig)  # as MaskedLanguageModel demands
    hidden = o.rows(o.reshape(encoded.tokens, [-1, config.hidden_size]), masked)
    hidden = o.activation(o.linear(hidden, f"{WORDS}transform"), config.hidden_act)
    hidden = o.layer_norm(hidden, f"{WORDS}layer_norm", config.layer_norm_eps)
    table = o.transpose(o.weight(f"{ENCODER}embeddings.word_embeddings.weight"), [1, 0])
    return o.add(o.matmul(hidden, table), o.weight(f"{WORDS}decoder_bias"))


HEADS: dict[str | None, Callable[[Operations, PretrainedConfig, EncodedGraph, Value | None], Value]] = {
    TEXT_VECTOR: _over_text,
    TOKEN_VECTORS: _over_tokens,
    MASKED_TOKENS: _over_masked_tokens,
}
