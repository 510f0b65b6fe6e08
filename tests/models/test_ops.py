import numpy as np
import paddle
import pytest

from onion.models import ops

ROWS, WIDTH, EPSILON = 6, 8, 1e-5


def test_dropout_zeroes_the_share_and_keeps_the_expectation():
    paddle.seed(3)
    dropped = ops.dropout(paddle.ones([400, 501]), 0.1, training=True).numpy()
    assert abs((dropped == 0).mean() - 0.1) < 0.003
    assert abs(dropped.mean() - 1) < 0.003
    assert len(np.unique(dropped)) == 2


def test_dropout_follows_paddles_generator_and_draws_anew_each_time():
    x = paddle.ones([64, 64])
    paddle.seed(3)
    state = paddle.get_rng_state()
    first, second = ops.dropout(x, 0.5, True).numpy(), ops.dropout(x, 0.5, True).numpy()
    paddle.set_rng_state(state)
    assert (ops.dropout(x, 0.5, True).numpy() == first).all()
    assert (ops.dropout(x, 0.5, True).numpy() == second).all()
    assert 0.4 < (first == second).mean() < 0.6


def test_dropout_passes_the_gradient_of_what_it_kept():
    paddle.seed(3)
    x = paddle.ones([50, 3])
    x.stop_gradient = False
    kept = ops.dropout(x, 0.3, True)
    kept.sum().backward()
    assert (x.grad.numpy() == kept.numpy()).all()


def test_dropout_is_nothing_in_evaluation_or_at_zero():
    x = paddle.ones([3])
    assert ops.dropout(x, 0.5, training=False) is x
    assert ops.dropout(x, 0.0, training=True) is x


def test_dropout_works_in_other_types_and_extreme_probabilities():
    assert ops.dropout(paddle.ones([8], "float64"), 0.5, True).dtype == paddle.float64
    assert (ops.dropout(paddle.ones([8]), 1e-9, True).numpy() == 1).all()
    assert np.isfinite(ops.dropout(paddle.ones([8]), 1 - 1e-9, True).numpy()).all()


def test_rows_picks_rows_and_adds_up_their_gradients():
    table = paddle.to_tensor(np.arange(6, dtype=np.float32).reshape(3, 2), stop_gradient=False)
    picked = ops.rows(table, paddle.to_tensor([2, 0, 2]))
    picked.sum().backward()
    assert picked.numpy().tolist() == [[4, 5], [0, 1], [4, 5]]
    assert table.grad.numpy().tolist() == [[1, 1], [0, 0], [2, 2]]


# -- LayerNorm, above all where Paddle's own gradient is wrong ---------------------------------------------------------


@pytest.fixture
def norm():
    random = np.random.default_rng(1)
    layer = ops.LayerNorm(WIDTH, epsilon=EPSILON)
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
