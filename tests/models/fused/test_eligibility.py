"""Which layers may be computed elsewhere: those that nobody has changed."""

import paddle
import pytest

from onion.models.fused.eligibility import Parts, plain_parts
from onion.models.layers import EncoderLayer
from tests.models.helpers import SMALL

PATHS = {"layer": "", "attention": "self_attn"}
PATHS |= {part: f"self_attn.{part[0]}_proj" for part in ("query", "key", "value")} | {"out": "self_attn.out_proj"}
PATHS |= {part: part for part in ("linear1", "linear2", "norm1", "norm2")}


@pytest.fixture
def layer():
    return EncoderLayer(SMALL)


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


@pytest.mark.parametrize("path", [path for path in PATHS.values() if path])
def test_a_part_of_another_kind_is_seen(layer, path):
    setattr(*owner_of(layer, path), paddle.nn.Identity())
    assert plain_parts(layer) is None


@pytest.mark.parametrize("path", ["norm1", "linear2"])
def test_subclasses_are_seen_too(layer, path):
    part = getattr(layer, path)
    part.__class__ = type("Own", (type(part),), {})
    assert plain_parts(layer) is None


def test_another_layer_is_none():
    assert plain_parts(paddle.nn.Linear(2, 2)) is None
