"""Clipping beside Paddle's own: the same to the bit."""

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
    found = kind(clip_norm)(pairs_of([each.clone() for each in gradients]))
    return [gradient.numpy() for _, gradient in found]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


@given(st.integers(0, 1000), st.sampled_from([1e-30, 1e-3, 0.02, 1.0, 1e10, 1e30]), st.sampled_from([1e-3, 1.0, 37.5]))
def test_is_paddles_to_the_bit(seed, scale, clip_norm):
    gradients = random_gradients(seed, scale)
    own, paddles = (
        clipped(kind, clip_norm, gradients) for kind in (ClipGradByGlobalNorm, paddle.nn.ClipGradByGlobalNorm)
    )
    assert same(own, paddles)


def keeps_what_is_no_number():
    """Tell whether Paddle's maximum of what is no number and 1 is none; in 2.6 it is 1."""
    return bool(paddle.isnan(paddle.maximum(paddle.full([1], np.nan), paddle.ones([1]))))


@needs(keeps_what_is_no_number(), "this Paddle's own clipping lets it pass")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_spread_as_paddle_spreads_it(bad):
    gradients = random_gradients(1)
    gradients[1][2] = bad
    own, paddles = (clipped(kind, 1.0, gradients) for kind in (ClipGradByGlobalNorm, paddle.nn.ClipGradByGlobalNorm))
    assert same(own, paddles)
    assert np.isnan(own[1][2])


def test_the_norm_is_the_one_that_was_asked_for():
    found = clipped(ClipGradByGlobalNorm, 0.5, random_gradients(2, 10.0))
    assert np.sqrt(sum(float((each**2).sum()) for each in found)) == pytest.approx(0.5, rel=1e-5)


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


def test_two_gradients_in_one_memory_are_scaled_once():
    shared = paddle.full([4], 3.0)
    found = ClipGradByGlobalNorm(1.0)(pairs_of([shared, shared]))
    assert same([each.numpy() for _, each in found], clipped(paddle.nn.ClipGradByGlobalNorm, 1.0, [shared, shared]))


def test_a_view_with_gaps_is_clipped_too():
    columns = [paddle.arange(12, dtype="float32").reshape([3, 4]).t(), paddle.ones([2])]
    found = ClipGradByGlobalNorm(1.0)(pairs_of(columns))
    assert same([each.numpy() for _, each in found], clipped(paddle.nn.ClipGradByGlobalNorm, 1.0, columns))


def test_doubles_are_left_to_paddle():
    gradients = random_gradients(9, 10.0, "float64")
    assert same(clipped(ClipGradByGlobalNorm, 1.0, gradients), clipped(paddle.nn.ClipGradByGlobalNorm, 1.0, gradients))


@needs_gpu
def test_on_a_gpu_nothing_is_read():
    gradients = [each.cuda() for each in random_gradients(10, 10.0)]
    assert not clipping._can_be_scaled(gradients)


def test_a_training_with_it_is_the_training_with_paddles():
    def trained(kind):
        paddle.seed(11)
        network = paddle.nn.Sequential(paddle.nn.Linear(6, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 2))
        optimizer = paddle.optimizer.AdamW(0.05, parameters=network.parameters(), grad_clip=kind(0.1))
        x = paddle.to_tensor(np.random.default_rng(12).normal(size=(16, 6)).astype("float32"))
        for _ in range(20):
            (network(x) ** 2).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        return [parameter.numpy() for parameter in network.parameters()]

    assert same(trained(ClipGradByGlobalNorm), trained(paddle.nn.ClipGradByGlobalNorm))
