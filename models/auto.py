"""Encoders of whichever family a folder or a config is of.

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
    """Load an encoder of any family from a folder of any of the layouts that config.py and weights.py read.

    Args:
        name_or_folder: a folder, or a named model, which is fetched the first time (see hub.py). It holds the config
            and the weights; heads among these are left out.
        **settings: config values to use instead of the file's, such as ``hidden_dropout_prob=0``.

    Raises:
        WeightsError: neither a folder nor a known name; of no known family; or something is missing, damaged, or does
            not fit.
    """
    folder = hub.resolve(name_or_folder)
    config = read_config(folder)
    return encoder_class(config).of(config, read_weights(folder), **settings)


def new_encoder(config: PretrainedConfig) -> PretrainedEncoder:
    """Make an encoder with new weights."""
    return encoder_class(config)(config)


def encoder_class(config: PretrainedConfig) -> type[PretrainedEncoder]:
    """Return the class of the encoders of a config's family."""
    module, name = FAMILIES[config.model_type].encoder.split(":")
    found: type[PretrainedEncoder] = getattr(importlib.import_module(module), name)
    return found
