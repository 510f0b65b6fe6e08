import numpy as np
import paddle
import pytest

from onion import CompositionError
from onion.models.encoder import Encoder
from onion.tasks.finetune import optimization
from onion.tasks.finetune.optimization import (
    fine_tuning_optimizer,
    is_decayed,
    set_layerwise_rates,
)
from onion.tasks.networks.classifier import Classifier
from onion.testing import toy_network


@pytest.fixture
def network(encoder_folder):
    paddle.seed(3)
    return Classifier(Encoder.from_pretrained(encoder_folder), 2)


def undecayed(network):
    return {path for path, _ in network.named_parameters() if not is_decayed(path)}


def test_biases_and_layer_norms_are_not_decayed(network):
    layers = [f"encoder.encoder.layers.{layer}" for layer in range(2)]
    parts = [f"self_attn.{each}_proj" for each in ("q", "k", "v", "out")] + ["linear1", "linear2", "norm1", "norm2"]
    biases = {f"{layer}.{part}.bias" for layer in layers for part in parts}
    biases |= {"encoder.embeddings.layer_norm.bias", "encoder.pooler.dense.bias", "classifier.bias"}
    norms = {f"{layer}.{norm}.weight" for layer in layers for norm in ("norm1", "norm2")}
    assert undecayed(network) == biases | norms | {"encoder.embeddings.layer_norm.weight"}


@pytest.mark.parametrize("decay", [None, 0.5])
def test_a_step_without_gradients_shrinks_exactly_the_decayed_parameters(network, decay):
    optimizer = fine_tuning_optimizer(
        network, 0.1, total_steps=10, warmup_ratio=0.0, weight_decay=0.5, layerwise_decay=decay
    )
    before = {path: parameter.numpy().copy() for path, parameter in network.named_parameters()}
    sum((parameter * 0).sum() for parameter in network.parameters()).backward()
    optimizer.step()
    for path, parameter in network.named_parameters():
        factor = 1 if path in undecayed(network) else 1 - 0.1 * 0.5 * wanted_factor(path, decay or 1.0)
        np.testing.assert_allclose(parameter.numpy(), before[path] * factor, rtol=1e-5, err_msg=path)


@pytest.mark.parametrize("decay", [None, 0.5])
def test_gradients_are_clipped_by_their_global_norm(network, decay):
    optimizer = fine_tuning_optimizer(
        network, 0.1, total_steps=10, warmup_ratio=0.0, weight_decay=0.0, max_grad_norm=0.25, layerwise_decay=decay
    )
    with_gradients_of_one(network)
    optimizer.step()
    # Adam's first moment after one step is (1 - beta1) times the clipped gradient.
    moments = [moment.numpy() / 0.1 for moment in optimizer._accumulators["moment1"].values()]
    assert np.sqrt(sum((moment.astype(np.float64) ** 2).sum() for moment in moments)) == pytest.approx(0.25, rel=1e-4)


# -- rates by layer ----------------------------------------------------------------------------------------------------


def factors(network):
    return {path: parameter.optimize_attr["learning_rate"] for path, parameter in network.named_parameters()}


def wanted_factor(path, decay):
    """Written out for the two layers of the tiny encoder."""
    if path.startswith("encoder.embeddings."):
        return decay**3
    if path.startswith("encoder.encoder.layers.0."):
        return decay**2
    if path.startswith("encoder.encoder.layers.1."):
        return decay
    assert path.startswith(("encoder.pooler.", "classifier."))
    return 1.0


def with_gradients_of_one(network):
    sum(parameter.sum() for parameter in network.parameters()).backward()


@pytest.mark.parametrize("decay", [1.0, 0.8, 0.5])
def test_rates_decay_with_the_depth_below_the_head(network, decay):
    set_layerwise_rates(network, decay)
    assert factors(network) == {path: wanted_factor(path, decay) for path in factors(network)}


def test_an_encoder_without_a_head_decays_too(encoder_folder):
    encoder = Encoder.from_pretrained(encoder_folder)
    set_layerwise_rates(encoder, 0.5)
    found = factors(encoder)
    assert found["embeddings.word_embeddings.weight"] == 0.125
    assert found["encoder.layers.0.linear1.weight"] == 0.25
    assert found["encoder.layers.1.norm2.bias"] == 0.5
    assert found["pooler.dense.weight"] == 1


def test_deep_encoders_count_their_layers_as_numbers():
    depths = [optimization.depth(f"encoder.layers.{layer}.linear1.weight", 12) for layer in range(12)]
    assert depths == [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert optimization.depth("deep.embeddings.layer_norm.bias", 12) == 13
    assert optimization.depth("heads.my_embeddings_head.weight", 12) == 0


def test_the_first_step_of_adamw_is_as_long_as_the_layers_rate(network):
    """Adam's first step is its rate, whatever the gradient; clipping and decay don't change that."""
    optimizer = fine_tuning_optimizer(
        network, 0.01, total_steps=10, warmup_ratio=0.0, weight_decay=0.0, layerwise_decay=0.5
    )
    before = {path: parameter.numpy().copy() for path, parameter in network.named_parameters()}
    with_gradients_of_one(network)
    optimizer.step()
    for path, parameter in network.named_parameters():
        step = before[path] - parameter.numpy()
        np.testing.assert_allclose(step, 0.01 * wanted_factor(path, 0.5), rtol=2e-2, err_msg=path)


def test_the_schedule_still_moves_all_rates(network):
    optimizer = fine_tuning_optimizer(
        network, 0.1, total_steps=10, warmup_ratio=0.5, weight_decay=0.0, layerwise_decay=0.5
    )
    before = {path: parameter.numpy().copy() for path, parameter in network.named_parameters()}
    with_gradients_of_one(network)
    optimizer.step()
    assert all((parameter.numpy() == before[path]).all() for path, parameter in network.named_parameters())
    optimizer._learning_rate.step()
    optimizer.step()
    assert all((parameter.numpy() != before[path]).any() for path, parameter in network.named_parameters())


def test_without_a_decay_rates_are_left_alone_and_one_removes_them(network):
    fine_tuning_optimizer(network, 0.1, total_steps=10, layerwise_decay=0.5)
    fine_tuning_optimizer(network, 0.1, total_steps=10)
    assert factors(network)["encoder.encoder.layers.0.linear1.weight"] == 0.25
    fine_tuning_optimizer(network, 0.1, total_steps=10, layerwise_decay=1.0)
    assert set(factors(network).values()) == {1.0}


@pytest.mark.parametrize("decay", [0.0, -0.5, 1.1, float("nan")])
def test_a_decay_out_of_range_is_refused(network, decay):
    with pytest.raises(CompositionError, match=r"layerwise_decay=.* is not in \(0, 1\]"):
        fine_tuning_optimizer(network, 0.1, total_steps=10, layerwise_decay=decay)


def test_a_network_without_layers_is_refused():
    with pytest.raises(CompositionError, match=r"ToyNetwork has no parameter in encoder\.layers\.N"):
        set_layerwise_rates(toy_network(), 0.9)
