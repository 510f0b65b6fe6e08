"""The norm's own gradient against autograd's; test_stack.py compares linear layers and activations."""

import numpy as np
import pytest

from onion.models.fused.training import primitives
from onion.models.fused.training.runtime import Gradients

# isort: split
import paddle
from paddle import nn


def tensor(*shape, scale=1.0, shift=0.0):
    return paddle.to_tensor((np.random.default_rng(len(shape)).normal(size=shape) * scale + shift).astype(np.float32))


def by_autograd(layer, x, gradient):
    x = x.detach()
    x.stop_gradient = False
    layer(x).backward(gradient)
    found = [x.grad.numpy(), *(each.grad.numpy() for each in layer.parameters())]
    for each in layer.parameters():
        each.clear_gradient(False)
    return found


def by_hand(backward, layer, x, gradient):
    gradients = Gradients()
    with paddle.no_grad():
        into = backward(layer, x, gradient, gradients)
    return [into.numpy(), *(gradients.of(each).numpy() for each in layer.parameters())]


def assert_close(found, wished):
    for one, other in zip(found, wished, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * max(1, abs(other).max()))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 1e-3])
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (100, 0), (0.01, 0), (1, 30)])
def test_norm(epsilon, scale, shift):
    layer = nn.LayerNorm(64, epsilon=epsilon)
    layer.weight.set_value(tensor(64))
    layer.bias.set_value(tensor(64, scale=3))
    x, gradient = tensor(9, 64, scale=scale, shift=shift), tensor(9, 64, scale=2)
    with paddle.no_grad():
        np.testing.assert_array_equal(primitives.norm(layer, x).numpy(), layer(x).numpy())
    assert_close(by_hand(primitives.norm_backward, layer, x, gradient), by_autograd(layer, x, gradient))


def test_a_norm_of_equal_numbers_has_a_finite_gradient():
    layer = nn.LayerNorm(8, epsilon=1e-5)
    found = by_hand(primitives.norm_backward, layer, paddle.full([2, 8], 3.0), tensor(2, 8))
    assert all(np.isfinite(each).all() for each in found)
