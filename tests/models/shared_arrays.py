"""A small encoder's weights and heads of pre-training as arrays, and what it means that two sets are equal."""

from __future__ import annotations

import numpy as np

from tests.models.helpers import small_encoder

HEADS = {
    "cls.predictions.transform.weight": (24, 24),
    "cls.predictions.transform.bias": (24,),
    "cls.predictions.layer_norm.weight": (24,),
    "cls.predictions.layer_norm.bias": (24,),
    "cls.predictions.decoder_weight": (40, 24),
    "cls.predictions.decoder_bias": (40,),
    "cls.seq_relationship.weight": (24, 2),
    "cls.seq_relationship.bias": (2,),
}


def ours(seed=1):
    return {name: parameter.numpy() for name, parameter in small_encoder(seed).named_parameters()}


def our_heads():
    generator = np.random.default_rng(3)
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in HEADS.items()}


def assert_equal_bits(first, second):
    assert sorted(first) == sorted(second)
    for name in first:
        assert first[name].shape == second[name].shape, name
        assert first[name].dtype == second[name].dtype, name
        assert first[name].tobytes() == second[name].tobytes(), name
