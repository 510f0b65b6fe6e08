"""Linear layers, norms and activations by hand against autograd."""

import numpy as np
import pytest

from onion.models.config import EncoderConfig
from onion.models.fused.training import primitives
from onion.models.fused.training.runtime import Gradients
from onion.models.layers import Linear
from tests.abilities import needs_layers_by_hand

# isort: split
import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import nn

CONFIG = EncoderConfig(
    vocab_size=2,
    hidden_size=2,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=2,
    max_position_embeddings=2,
)


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


@pytest.mark.parametrize("rows", [1, 7])
def test_linear(rows):
    layer = Linear(5, 3, CONFIG)
    layer.bias.set_value(tensor(3))
    x, gradient = tensor(rows, 5), tensor(rows, 3, scale=2)
    with paddle.no_grad():
        np.testing.assert_allclose(primitives.linear(layer, x).numpy(), layer(x).numpy(), rtol=1e-5, atol=1e-6)
    assert_close(by_hand(primitives.linear_backward, layer, x, gradient), by_autograd(layer, x, gradient))


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


@needs_layers_by_hand
@pytest.mark.parametrize("activation", [F.gelu, F.relu])
def test_activations(activation):
    x, gradient = tensor(40, 3, scale=3), tensor(40, 3)
    found = primitives.ACTIVATIONS_BACKWARD[activation](x, gradient).numpy()
    x.stop_gradient = False
    activation(x).backward(gradient)
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_frozen_parameters_get_no_gradient():
    layer = Linear(5, 3, CONFIG)
    layer.weight.stop_gradient = True
    gradients = Gradients()
    primitives.linear_backward(layer, tensor(2, 5), tensor(2, 3), gradients)
    assert gradients.of(layer.weight) is None
    assert gradients.of(layer.bias) is not None
