import numpy as np
import paddle

from onion.models import ops


def test_linear_is_the_product_and_the_bias():
    generator = np.random.default_rng(0)
    x, weight, bias = (paddle.to_tensor(generator.normal(size=s).astype(np.float32)) for s in ((5, 3), (3, 4), (4,)))
    found = ops.linear(x, weight, bias).numpy()
    np.testing.assert_allclose(found, x.numpy() @ weight.numpy() + bias.numpy(), atol=1e-6)


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
