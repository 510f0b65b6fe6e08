import numpy as np
import paddle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import CompositionError
from onion.models.encoder import Encoder
from onion.tasks.classification import Classifier
from onion.tasks.finetune import optimization
from onion.tasks.finetune.optimization import (
    ClipGradByGlobalNorm,
    fine_tuning_optimizer,
    is_decayed,
    set_layerwise_rates,
)
from onion.testing import toy_network
from tests.abilities import needs, needs_gpu


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


# -- clipping beside Paddle's own: the same to the bit -----------------------------------------------------------------

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
    return [each.numpy() for _, each in kind(clip_norm)(pairs_of([each.clone() for each in gradients]))]


def ours_and_paddles(clip_norm, gradients):
    return [clipped(kind, clip_norm, gradients) for kind in (ClipGradByGlobalNorm, paddle.nn.ClipGradByGlobalNorm)]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


@given(st.integers(0, 1000), st.sampled_from([1e-30, 1e-3, 0.02, 1.0, 1e10, 1e30]), st.sampled_from([1e-3, 1.0, 37.5]))
def test_is_paddles_to_the_bit(seed, scale, clip_norm):
    assert same(*ours_and_paddles(clip_norm, random_gradients(seed, scale)))


def keeps_what_is_no_number():
    """Tell whether Paddle's maximum of what is no number and 1 is none; in 2.6 it is 1."""
    return bool(paddle.isnan(paddle.maximum(paddle.full([1], np.nan), paddle.ones([1]))))


@needs(keeps_what_is_no_number(), "this Paddle's own clipping lets it pass")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_spread_as_paddle_spreads_it(bad):
    gradients = random_gradients(1)
    gradients[1][2] = bad
    own, paddles = ours_and_paddles(1.0, gradients)
    assert same(own, paddles)
    assert np.isnan(own[1][2])


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


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: [paddle.full([4], 3.0)] * 2, id="two in one memory"),
        pytest.param(lambda: [paddle.arange(12.0).reshape([3, 4]).t(), paddle.ones([2])], id="a view with gaps"),
        pytest.param(lambda: random_gradients(9, 10.0, "float64"), id="doubles"),
    ],
)
def test_what_cannot_be_scaled_in_place_is_left_to_paddle(make):
    kinds = ClipGradByGlobalNorm, paddle.nn.ClipGradByGlobalNorm
    own, paddles = ([each.numpy() for _, each in kind(1.0)(pairs_of(make()))] for kind in kinds)
    assert same(own, paddles)


@needs_gpu
def test_on_a_gpu_nothing_is_read():
    gradients = [each.cuda() for each in random_gradients(10, 10.0)]
    assert not optimization._can_be_scaled(gradients)
