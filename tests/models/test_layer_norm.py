"""The norm against a formula, above all where Paddle's own gradient is wrong."""

import numpy as np
import pytest

from onion.models.ops import LayerNorm

# isort: split
import paddle

ROWS, WIDTH, EPSILON = 6, 8, 1e-5


@pytest.fixture
def norm():
    random = np.random.default_rng(1)
    layer = LayerNorm(WIDTH, epsilon=EPSILON)
    layer.weight.set_value(random.normal(size=WIDTH).astype(np.float32))
    layer.bias.set_value(random.normal(size=WIDTH).astype(np.float32))
    return layer


def values(*shape):
    return np.random.default_rng(2).normal(size=shape)


def formula(layer, x, gradient):
    """What comes out and the gradients of x, weight and bias, in float64."""
    weight, bias = (each.numpy().astype(np.float64) for each in (layer.weight, layer.bias))
    scale = 1 / np.sqrt(x.var(axis=1, keepdims=True) + EPSILON)
    normal = (x - x.mean(axis=1, keepdims=True)) * scale
    into = gradient * weight
    mean, lean = into.mean(axis=1, keepdims=True), (into * normal).mean(axis=1, keepdims=True)
    return (
        normal * weight + bias,
        scale * (into - mean - normal * lean),
        (gradient * normal).sum(axis=0),
        gradient.sum(axis=0),
    )


@pytest.mark.parametrize("frozen", [(), ("weight",), ("bias",), ("weight", "bias")])
def test_gradients_whatever_is_frozen(norm, frozen):
    x, gradient = values(ROWS, WIDTH), values(ROWS, WIDTH) * 2
    out, *wished = formula(norm, x, gradient)
    for name in frozen:
        getattr(norm, name).stop_gradient = True
    given = paddle.to_tensor(x.astype(np.float32), stop_gradient=False)
    found = norm(given)
    np.testing.assert_allclose(found.numpy(), out, rtol=0, atol=1e-5)
    found.backward(paddle.to_tensor(gradient.astype(np.float32)))
    for each, right in zip((given, norm.weight, norm.bias), wished, strict=True):
        if each.stop_gradient:
            assert each.grad is None
        else:
            np.testing.assert_allclose(each.grad.numpy(), right, rtol=0, atol=1e-4)


def test_paddle_grad_of_x_alone(norm):
    x, gradient = values(ROWS, WIDTH), values(ROWS, WIDTH)
    given = paddle.to_tensor(x.astype(np.float32), stop_gradient=False)
    (found,) = paddle.grad(norm(given), [given], paddle.to_tensor(gradient.astype(np.float32)))
    np.testing.assert_allclose(found.numpy(), formula(norm, x, gradient)[1], rtol=0, atol=1e-4)


def test_without_gradients_it_is_paddles(norm):
    x = paddle.to_tensor(values(ROWS, WIDTH).astype(np.float32))
    with paddle.no_grad():
        np.testing.assert_array_equal(norm(x).numpy(), paddle.nn.LayerNorm.forward(norm, x).numpy())
