"""Looking inside an encoder: what is seen is what was computed, and nothing is changed by looking."""

import copy

import numpy as np
import paddle
import pytest

from onion import CheckpointError, Forward, GradientMachine, Runner
from onion.models.hidden_states import WithHiddenStates, record_hidden_states
from onion.tasks.networks.classifier import Classifier
from onion.testing import Batches
from tests.models.helpers import MASKS, SMALL, VARIANTS, small_encoder


def batch_of(mask, seed=0):
    """Ids and a mask, as an encoder takes them."""
    mask = np.array(mask)
    ids = np.random.default_rng(seed).integers(2, SMALL.vocab_size, mask.shape)
    return {"input_ids": ids, "attention_mask": mask}


class Network(paddle.nn.Layer):
    """The least that Transparent takes: an encoder, and a parameter of its own beside it."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.scale = self.create_parameter([1])

    def forward(self, batch):
        return self.encoder(**batch).pooled_output * self.scale


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_hidden_states_are_those_of_encoders_that_end_there(config, mask):
    encoder, batch = small_encoder(config=config), batch_of(mask)
    with record_hidden_states(encoder) as inside:
        whole = encoder(**batch)
    assert sorted(inside.hidden) == [0, 1, 2]
    np.testing.assert_array_equal(inside.packing.mask, np.array(mask, bool))
    np.testing.assert_array_equal(inside.hidden[2].numpy(), whole.packed.numpy())
    again = encoder.encoder.layers[0](inside.hidden[0], inside.packing)
    np.testing.assert_array_equal(inside.hidden[1].numpy(), again.numpy())


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_scores_are_those_that_the_layer_attended_by(mask):
    """With them a layer's attention is put together by hand; it gives what the layer gave."""
    encoder, batch = small_encoder(), batch_of(mask)
    attended = {}
    layer = encoder.encoder.layers[1].self_attn
    layer.register_forward_post_hook(lambda _, inputs, output: attended.update(output=output))
    with record_hidden_states(encoder) as inside:
        encoder(**batch)
    mask = np.array(mask, bool)
    scores = inside.scores(2).numpy()
    length, heads = mask.shape[1], SMALL.num_attention_heads
    assert scores.shape == (len(mask), heads, length, length)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    assert (weights * ~mask[:, None, None, :] == 0).all()
    values = np.zeros((*mask.shape, SMALL.hidden_size), np.float32)
    values[mask] = layer.v_proj(inside.hidden[1]).numpy()
    split = values.reshape(*mask.shape, heads, -1).transpose(0, 2, 1, 3)
    merged = (weights @ split).transpose(0, 2, 1, 3).reshape(values.shape)[mask]
    np.testing.assert_allclose(layer.out_proj(paddle.to_tensor(merged)).numpy(), attended["output"].numpy(), atol=1e-5)


def test_the_scores_have_a_gradient_of_their_own():
    encoder = small_encoder()
    with record_hidden_states(encoder) as inside:
        encoder(**batch_of(MASKS["none"]))
    inside.scores(1).square().sum().backward()
    first, second = (layer.self_attn for layer in encoder.encoder.layers)
    assert float(first.q_proj.weight.grad.abs().sum()) > 0
    assert float(first.k_proj.weight.grad.abs().sum()) > 0
    assert first.v_proj.weight.grad is None
    assert second.q_proj.weight.grad is None


def hooks(encoder):
    return sum(len(layer._forward_post_hooks) for layer in encoder.sublayers(include_self=True))


def test_looking_changes_nothing_and_leaves_nothing():
    encoder, batch = small_encoder(), batch_of(MASKS["right"])
    before = encoder(**batch).packed.numpy()
    with record_hidden_states(encoder) as inside:
        seen = encoder(**batch).packed.numpy()
        encoder(**batch_of(MASKS["left"], seed=1))
        last = encoder(**batch_of(MASKS["holes"], seed=2))
        assert hooks(encoder) > 0
    assert hooks(encoder) == 0
    np.testing.assert_array_equal(before, seen)
    np.testing.assert_array_equal(inside.hidden[2].numpy(), last.packed.numpy())
    encoder(**batch)
    np.testing.assert_array_equal(inside.hidden[2].numpy(), last.packed.numpy())


def test_hooks_are_gone_after_an_error():
    encoder = small_encoder()
    with pytest.raises(ZeroDivisionError), record_hidden_states(encoder):
        raise ZeroDivisionError
    assert hooks(encoder) == 0


def test_two_networks_that_share_an_encoder_are_seen_each_on_its_own():
    encoder, batch = small_encoder(), batch_of(MASKS["right"])
    one, other = WithHiddenStates(Network(encoder)), WithHiddenStates(Network(encoder))
    first, second = one(batch), other(batch_of(MASKS["left"], seed=5))
    assert not np.array_equal(first.hidden[1].numpy(), second.hidden[1].numpy())
    np.testing.assert_array_equal(first.hidden[1].numpy(), one(batch).hidden[1].numpy())


def test_a_transparent_network_is_the_network():
    network, batch = Network(small_encoder()), batch_of(MASKS["holes"])
    through = WithHiddenStates(network)
    np.testing.assert_array_equal(through(batch).outputs.numpy(), network(batch).numpy())
    assert through.state_dict().keys() == network.state_dict().keys() >= {"scale", "encoder.pooler.dense.bias"}
    assert list(map(id, through.parameters())) == list(map(id, network.parameters()))
    through.eval()
    assert not network.training
    through.train()
    assert network.training
    assert network.encoder.training


def test_what_was_learned_through_it_is_saved_as_the_networks_and_loads_either_way():
    network = Classifier(small_encoder(), 2)
    saved = GradientMachine(WithHiddenStates(network)).state_dict()
    assert saved.keys() == GradientMachine(network).state_dict().keys()
    fresh = WithHiddenStates(Classifier(small_encoder(seed=2), 2))
    GradientMachine(fresh).load_state_dict(saved)
    assert (fresh.network.classifier.weight.numpy() == network.classifier.weight.numpy()).all()
    with pytest.raises(CheckpointError, match=r"classifier\.bias"):
        GradientMachine(WithHiddenStates(Classifier(small_encoder(), 3))).load_state_dict(saved)


def test_it_can_be_copied():
    network = Network(small_encoder())
    copied = copy.deepcopy(WithHiddenStates(network))
    assert copied.network is not network
    batch = batch_of(MASKS["right"])
    np.testing.assert_array_equal(copied(batch).outputs.numpy(), network(batch).numpy())


def test_a_forward_changes_the_mode_of_the_network_itself():
    modes = []

    class Noting(Network):
        def forward(self, batch):
            modes.append(self.training)
            return super().forward(batch)

    network = Noting(small_encoder())
    network.train()
    Runner(Batches([batch_of([[1, 1]])]), Forward(WithHiddenStates(network))).run(passes=1)
    assert (modes, network.training) == ([False], True)
