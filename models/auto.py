"""Load encoders of any family.

encoder = load_encoder("minilm")
sequence_output, pooled_output = encoder(input_ids, token_type_ids)
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from onion.models import hub
from onion.models.families import FAMILIES, read_config
from onion.models.pretrained_config import PretrainedConfig
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.models.weights import read_weights


def load_encoder(name_or_folder: str | Path, **settings: Any) -> PretrainedEncoder:
    """Load an encoder from a folder of any family and layout (see config.py and weights.py).

    Args:
        name_or_folder: a folder with config and weights, or a model name (see hub.py), which is downloaded on first
            use. Heads among the weights are ignored.
        **settings: config values that override those of the file, such as ``hidden_dropout_prob=0``.

    Raises:
        WeightsError: the name or the family is unknown, or a file is missing, damaged or does not fit.
    """
    folder = hub.resolve(name_or_folder)
    config = read_config(folder)
    return encoder_class(config).of(config, read_weights(folder), **settings)


def new_encoder(config: PretrainedConfig) -> PretrainedEncoder:
    """Create an encoder with new weights."""
    return encoder_class(config)(config)


def encoder_class(config: PretrainedConfig) -> type[PretrainedEncoder]:
    """Return the encoder class for a config."""
    module, name = FAMILIES[config.model_type].encoder.split(":")
    found: type[PretrainedEncoder] = getattr(importlib.import_module(module), name)
    return found
