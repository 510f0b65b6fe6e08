"""Attempt: nothing has to remain on a network of a run that failed."""

import numpy as np
import paddle
import pytest

from onion.testing import toy_examples, toy_network
from onion.training.gradient_rollback import GradientRollback


def backward(network, seed):
    examples = toy_examples(4, seed=seed)
    batch = {name: paddle.to_tensor(np.stack([each[name] for each in examples])) for name in ("x", "y")}
    network.loss(network(batch), batch).backward()


def gradients(network):
    return [None if each.grad is None else each.grad.numpy().copy() for each in network.parameters()]


def check_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        assert a is None or np.array_equal(a, b)


@pytest.fixture(name="network")
def a_network():
    return toy_network()


def test_gradients_made_since_are_thrown_away(network):
    attempt = GradientRollback(network)
    backward(network, 0)
    attempt.take_back()
    assert gradients(network) == [None, None], "none, and not zeros, by which momentum and weight decay would move"


def test_no_optimizer_moves_what_was_taken_back(network):
    optimizer = paddle.optimizer.AdamW(0.1, parameters=network.parameters(), weight_decay=0.5)
    backward(network, 0)
    optimizer.step()
    optimizer.clear_grad(set_to_zero=False)
    before = [each.numpy().copy() for each in network.parameters()]
    attempt = GradientRollback(network)
    backward(network, 1)
    attempt.take_back()
    optimizer.step()
    check_same(before, [each.numpy() for each in network.parameters()])


def test_earlier_gradients_are_set_aside_and_added_again(network):
    backward(network, 0)
    earlier = gradients(network)
    attempt = GradientRollback(network)
    assert gradients(network) == [None, None]
    backward(network, 1)
    later = gradients(network)
    attempt.keep()
    check_same(gradients(network), [a + b for a, b in zip(earlier, later, strict=True)])


def test_they_survive_a_try_that_is_taken_back(network):
    backward(network, 0)
    earlier = gradients(network)
    attempt = GradientRollback(network)
    for seed in (1, 2):
        backward(network, seed)
        attempt.take_back()
    attempt.keep()
    check_same(gradients(network), earlier)


def test_more_gradients_add_up_to_those_that_were_put_back(network):
    backward(network, 0)
    earlier = gradients(network)
    GradientRollback(network).keep()
    backward(network, 0)
    check_same(gradients(network), [2 * each for each in earlier])


def test_keeping_where_nothing_was_before_changes_nothing(network):
    attempt = GradientRollback(network)
    backward(network, 0)
    made = gradients(network)
    attempt.keep()
    check_same(gradients(network), made)


def test_buffers_go_back(network):
    network.register_buffer("mean", paddle.ones([2]))
    attempt = GradientRollback(network)
    for value in (5.0, float("nan")):
        network.mean.set_value(paddle.full([2], value))
        attempt.take_back()
        assert network.mean.tolist() == [1, 1]
