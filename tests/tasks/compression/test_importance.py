"""Importance against derivatives by masks; sorting; what the measuring leaves as it was."""

import numpy as np
import paddle
import pytest

from onion import GradientMachine, Runner
from onion.errors import CompositionError
from onion.tasks.compression.importance import Importance
from onion.testing import Batches
from tests.models.helpers import arrays_of, assert_equal_bits, close
from tests.tasks.compression.helpers import DROPPING, batches, classifier, outputs


@pytest.fixture
def network():
    return classifier()


def measured(network, count=2):
    importance = Importance(network)
    Runner(Batches(batches()[:count]), importance, GradientMachine(network)).run(passes=1)
    return importance


def masked_loss(network, batch, layer, head=None):
    """The loss and its derivative by a factor of what a head gives to out_proj."""
    size = network.encoder.config.head_size
    factor = paddle.ones([network.encoder.config.num_attention_heads])
    factor.stop_gradient = False
    attention = network.encoder.encoder.layers[layer].self_attn
    scaled = attention.out_proj.register_forward_pre_hook(
        lambda _, inputs: (inputs[0] * factor.unsqueeze(1).expand([-1, size]).reshape([-1]),)
    )
    network.loss(network(batch), batch).backward()
    scaled.remove()
    return factor.grad.numpy()


def test_a_heads_importance_is_the_derivative_of_the_loss_by_its_factor(network):
    importance = measured(network)
    wanted = np.zeros_like(importance.heads)
    for batch in batches()[:2]:
        for layer in range(len(wanted)):
            network.eval()
            wanted[layer] += np.abs(masked_loss(network, batch, layer))
            network.clear_gradients()
    np.testing.assert_allclose(importance.heads, wanted, rtol=1e-3)


def test_a_neurons_importance_is_what_its_weights_add_to_the_loss(network):
    importance = measured(network, count=1)
    network.eval()
    batch = batches()[0]
    network.loss(network(batch), batch).backward()
    linear1, linear2 = network.encoder.encoder.layers[1].linear1, network.encoder.encoder.layers[1].linear2
    products = [each.numpy() * each.grad.numpy() for each in (linear1.weight, linear1.bias, linear2.weight)]
    wanted = np.abs(products[0].sum(0) + products[1]) + np.abs(products[2].sum(1))
    np.testing.assert_allclose(importance.neurons[1], wanted, rtol=1e-4)


def test_measuring_moves_nothing_and_leaves_no_gradients_and_no_dropout_matters():
    network = classifier(DROPPING)
    before = arrays_of(network)
    first, again = measured(network), measured(network)
    np.testing.assert_array_equal(first.heads, again.heads)
    assert_equal_bits(arrays_of(network), before)
    assert all(parameter.grad is None for parameter in network.parameters())


def test_sorted_the_most_important_come_first_and_nothing_else_changes(network):
    before = outputs(network)
    importance = measured(network)
    importance.sort()
    close(outputs(network), before)
    assert (np.diff(importance.heads, axis=1) <= 0).all()
    assert (np.diff(importance.neurons, axis=1) <= 0).all()
    np.testing.assert_allclose(measured(network).heads, importance.heads, rtol=1e-3)
    np.testing.assert_allclose(measured(network).neurons, importance.neurons, rtol=1e-3, atol=1e-7)


def test_what_was_measured_is_saved_with_a_checkpoint(network):
    importance = measured(network)
    other = Importance(network)
    other.load_state_dict(importance.state_dict())
    np.testing.assert_array_equal(other.neurons, importance.neurons)


def test_every_run_begins_with_nothing(network):
    importance = Importance(network)
    runner = Runner(Batches(batches()[:2]), importance, GradientMachine(network))
    runner.run(passes=1)
    once = importance.heads.copy()
    runner.run(passes=1)
    np.testing.assert_array_equal(importance.heads, once)


def test_nothing_is_sorted_by_nothing(network):
    with pytest.raises(CompositionError, match="nothing to sort layer 1 by: run it first"):
        Importance(network).sort()
    for parameter in network.encoder.parameters():
        parameter.stop_gradient = True
    with pytest.raises(CompositionError, match="an encoder that is not frozen"):
        measured(network).sort()


def test_without_a_network_inside_it_is_refused(network):
    with pytest.raises(CompositionError, match="gradients of the networks inside it"):
        Runner(Batches(batches()[:1]), GradientMachine(network), Importance(network)).run(passes=1)


def test_the_figures_are_of_the_sizes_of_the_encoder(network):
    importance = Importance(network)
    config = network.encoder.config
    assert importance.heads.shape == (config.num_hidden_layers, config.num_attention_heads)
    assert importance.neurons.shape == (config.num_hidden_layers, config.intermediate_size)
