"""Which layers may be computed elsewhere: those that nobody has changed."""

import paddle
import pytest

from onion.models.config import EncoderConfig
from onion.models.fused.eligibility import Parts, plain_parts
from onion.models.layers import EncoderLayer, Linear
from onion.models.ops import LayerNorm

PATHS = {
    "layer": "",
    "attention": "self_attn",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "out": "self_attn.out_proj",
    "linear1": "linear1",
    "linear2": "linear2",
    "norm1": "norm1",
    "norm2": "norm2",
}


@pytest.fixture
def layer():
    config = EncoderConfig(
        vocab_size=9,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=4,
    )
    return EncoderLayer(config)


def owner_of(layer, path):
    *above, name = path.split(".")
    return (getattr(layer, above[0]) if above else layer), name


def part_of(layer, path):
    return getattr(*owner_of(layer, path)) if path else layer


def test_every_part_is_found_under_its_name(layer):
    parts = plain_parts(layer)
    assert Parts._fields == tuple(PATHS)
    assert all(getattr(parts, name) is part_of(layer, path) for name, path in PATHS.items())


@pytest.mark.parametrize("path", PATHS.values())
@pytest.mark.parametrize("hook", ["register_forward_pre_hook", "register_forward_post_hook"])
def test_a_hook_is_seen_until_it_is_gone(layer, path, hook):
    there = getattr(part_of(layer, path), hook)(lambda *given: None)
    assert plain_parts(layer) is None
    there.remove()
    assert plain_parts(layer) is not None


class OwnLinear(Linear):
    """Does something else."""


class OwnNorm(LayerNorm):
    """Does something else."""


@pytest.mark.parametrize("path", [path for path in PATHS.values() if path])
def test_a_part_of_another_kind_is_seen(layer, path):
    setattr(*owner_of(layer, path), paddle.nn.Identity())
    assert plain_parts(layer) is None


def test_subclasses_are_seen_too(layer):
    layer.norm1.__class__ = OwnNorm
    assert plain_parts(layer) is None
    layer.norm1.__class__ = LayerNorm
    layer.linear2.__class__ = OwnLinear
    assert plain_parts(layer) is None


def test_another_layer_is_none():
    assert plain_parts(paddle.nn.Linear(2, 2)) is None
