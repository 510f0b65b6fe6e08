"""The graph of an encoder of any family."""

from __future__ import annotations

from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from onion.models.graphs.encoded import EncodedGraph, Inputs
from onion.models.graphs.operations import Operations
from onion.models.graphs.transformer import transformer
from onion.models.graphs.words import words
from onion.models.graphs.xlnet import xlnet
from onion.models.pretrained_config import PretrainedConfig
from onion.models.words.config import WordsConfig
from onion.models.xlnet.config import XLNetConfig


def encoder_graph(o: Operations, config: PretrainedConfig, inputs: Inputs, prefix: str = "encoder.") -> EncodedGraph:
    """Build the graph of an encoder.

    Args:
        o: carries out the operations; has the encoder's parameters.
        config: of the encoder.
        inputs: a padded batch.
        prefix: what the paths of the encoder's parameters begin with.

    Raises:
        WeightsError: the family has no graph.
    """
    if isinstance(config, EncoderConfig):  # ELECTRA's config is one too
        return transformer(o, config, inputs, prefix)
    if isinstance(config, XLNetConfig):
        return xlnet(o, config, inputs, prefix)
    if isinstance(config, WordsConfig):
        return words(o, config, inputs, prefix)
    raise WeightsError(f"{config.model_type} encoders have no graph, so they cannot be exported")


def reads_types(config: PretrainedConfig) -> bool:
    """Return whether the graph of an encoder reads the segments of tokens."""
    if isinstance(config, WordsConfig):
        return config.pairs
    return bool(getattr(config, "type_vocab_size", True))
