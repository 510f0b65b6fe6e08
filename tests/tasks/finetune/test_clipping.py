"""Clipping beside Paddle's own: the same to the bit; the norm is kept."""

import numpy as np
import paddle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.tasks.finetune import clipping
from onion.tasks.finetune.clipping import ClipGradByGlobalNorm
from tests.abilities import needs, needs_gpu

SIZES = [[3, 5], [7], [1], [40, 30]]


def pairs_of(gradients, need_clip=True):
    found = []
    for gradient in gradients:
        parameter = paddle.create_parameter([1], "float32")
        parameter.need_clip = need_clip
        found.append((parameter, gradient))
    return found


def random_gradients(seed, scale=1.0, dtype="float32"):
    random = np.random.default_rng(seed)
    return [paddle.to_tensor((random.normal(size=size) * scale).astype(dtype)) for size in SIZES]


def clipped(kind, clip_norm, gradients):
    """What a clip makes of copies of gradients."""
    return [each.numpy() for _, each in kind(clip_norm)(pairs_of([each.clone() for each in gradients]))]


def ours_and_paddles(clip_norm, gradients):
    return [clipped(kind, clip_norm, gradients) for kind in (ClipGradByGlobalNorm, paddle.nn.ClipGradByGlobalNorm)]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


@given(st.integers(0, 1000), st.sampled_from([1e-30, 1e-3, 0.02, 1.0, 1e10, 1e30]), st.sampled_from([1e-3, 1.0, 37.5]))
def test_is_paddles_to_the_bit(seed, scale, clip_norm):
    assert same(*ours_and_paddles(clip_norm, random_gradients(seed, scale)))


def keeps_what_is_no_number():
    """Tell whether Paddle's maximum of what is no number and 1 is none; in 2.6 it is 1."""
    return bool(paddle.isnan(paddle.maximum(paddle.full([1], np.nan), paddle.ones([1]))))


@needs(keeps_what_is_no_number(), "this Paddle's own clipping lets it pass")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_spread_as_paddle_spreads_it(bad):
    gradients = random_gradients(1)
    gradients[1][2] = bad
    own, paddles = ours_and_paddles(1.0, gradients)
    assert same(own, paddles)
    assert np.isnan(own[1][2])


def test_long_gradients_are_scaled_where_they_stand():
    gradients = random_gradients(3, 10.0)
    before = [each.numpy().copy() for each in gradients]
    found = ClipGradByGlobalNorm(1.0)(pairs_of(gradients))
    assert all(after is gradient for (_, after), gradient in zip(found, gradients, strict=True))
    assert not any(np.array_equal(after.numpy(), was) for after, was in zip(gradients, before, strict=True))


def test_short_gradients_are_left_alone(monkeypatch):
    monkeypatch.setattr(paddle.Tensor, "scale_", None)  # a call would fail
    gradients = random_gradients(4, 1e-4)
    assert same(clipped(ClipGradByGlobalNorm, 1.0, gradients), [each.numpy() for each in gradients])


def test_parameters_that_are_left_out_neither_count_nor_change():
    counted, left_out = random_gradients(5, 10.0), random_gradients(6, 10.0)
    before = [each.numpy().copy() for each in left_out]
    alone = clipped(ClipGradByGlobalNorm, 1.0, counted)
    found = ClipGradByGlobalNorm(1.0)([*pairs_of(counted), *pairs_of(left_out, need_clip=False)])
    assert same([each.numpy() for _, each in found], [*alone, *before])


def test_parameters_without_a_gradient_are_passed_over():
    gradients = random_gradients(7)
    pairs = pairs_of(gradients)
    found = ClipGradByGlobalNorm(1.0)([pairs[0], (pairs[1][0], None), *pairs[2:]])
    assert [parameter.name for parameter, _ in found] == [pairs[place][0].name for place in (0, 2, 3)]


def test_nothing_to_clip():
    assert ClipGradByGlobalNorm(1.0)([]) == []
    left_out = pairs_of(random_gradients(8), need_clip=False)
    assert ClipGradByGlobalNorm(1e-9)(left_out) == left_out


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: [paddle.full([4], 3.0)] * 2, id="two in one memory"),
        pytest.param(lambda: [paddle.arange(12.0).reshape([3, 4]).t(), paddle.ones([2])], id="a view with gaps"),
        pytest.param(lambda: random_gradients(9, 10.0, "float64"), id="doubles"),
    ],
)
def test_what_cannot_be_scaled_in_place_is_left_to_paddle(make):
    kinds = ClipGradByGlobalNorm, paddle.nn.ClipGradByGlobalNorm
    own, paddles = ([each.numpy() for _, each in kind(1.0)(pairs_of(make()))] for kind in kinds)
    assert same(own, paddles)


@pytest.mark.parametrize("scale", [1e-3, 10.0])
def test_on_other_devices_it_is_the_same_and_nothing_is_read(scale, monkeypatch):
    monkeypatch.setattr(clipping, "_can_be_read", lambda tensor: False)
    monkeypatch.setattr(paddle.Tensor, "item", None)  # a call would fail
    assert same(*ours_and_paddles(1.0, random_gradients(10, scale)))


@needs_gpu
def test_a_gpu_is_such_a_device():
    assert not clipping._can_be_read(paddle.ones([1]).cuda())


@pytest.mark.parametrize("scale", [1e-3, 10.0])
def test_the_norm_before_clipping_is_kept(scale):
    gradients, clip = random_gradients(11, scale), ClipGradByGlobalNorm(1.0)
    expected = np.sqrt(sum((each.numpy().astype("float64") ** 2).sum() for each in gradients))
    clip(pairs_of(gradients))
    assert float(clip.norm) == pytest.approx(expected, rel=1e-5)
    clip([])
    assert clip.norm is None
