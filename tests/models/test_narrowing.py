"""Narrowed encoders: equal to the whole one where nothing is cut, in every path that computes; what cannot be cut."""

import attrs
import numpy as np
import paddle
import pytest

from onion.engine.backward import once
from onion.errors import CompositionError, WeightsError
from onion.models.auto import load_encoder, new_encoder
from onion.models.config import EncoderConfig
from onion.models.narrowing import Narrowed, narrow, narrowed_config, sort_parts
from onion.models.xlnet.config import XLNetConfig
from tests.models.helpers import MASKS, SMALL, arrays_of, assert_equal_bits, close, encoded, small_encoder

FOUR = attrs.evolve(SMALL, num_attention_heads=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


@pytest.fixture
def encoder():
    return small_encoder(config=FOUR)


def outputs(encoder, mask=MASKS["holes"]):
    encoder.eval()
    with paddle.no_grad():
        found = encoded(encoder, np.array(mask))
        return np.concatenate([found.packed.numpy(), found.pooled_output.numpy()])


def test_at_the_full_width_nothing_changes(encoder):
    narrower = narrow(encoder, 1.0)
    assert narrower.config == encoder.config
    assert_equal_bits(arrays_of(narrower), arrays_of(encoder))


@pytest.mark.parametrize(("width", "heads", "neurons"), [(0.75, 3, 0.75), (0.5, 2, 0.5), (0.25, 1, 0.25)])
def test_sizes_are_shares_and_heads_keep_theirs(width, heads, neurons, encoder):
    config = narrow(encoder, width).config
    assert (config.num_attention_heads, config.head_size) == (heads, FOUR.head_size)
    assert config.intermediate_size == FOUR.intermediate_size * neurons
    assert config.hidden_size == FOUR.hidden_size
    assert narrowed_config(config, 1.0) == config


def test_at_least_one_head_and_one_neuron_are_left(encoder):
    config = narrow(encoder, 0.001).config
    assert (config.num_attention_heads, config.intermediate_size) == (1, 1)


def zeroed(encoder, width):
    """A copy in which the parts that a narrowed encoder has not contribute nothing."""
    config = narrowed_config(encoder.config, width)
    whole = small_encoder(config=FOUR)
    for layer in whole.encoder.layers:
        kept_of = {layer.self_attn.out_proj: config.attention_size, layer.linear2: config.intermediate_size}
        for linear, kept in kept_of.items():
            weight = linear.weight.numpy()
            weight[kept:] = 0
            linear.weight.set_value(weight)
    return whole


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("width", [0.75, 0.5, 0.25])
def test_what_is_cut_contributes_nothing(width, mask, encoder):
    close(outputs(narrow(encoder, width), mask), outputs(zeroed(encoder, width), mask))


@pytest.mark.parametrize("cls_only", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_training_and_prediction_compute_the_same(fused, cls_only, encoder):
    narrower = narrow(encoder, 0.5)
    mask = np.array(MASKS["holes"])
    wanted = outputs(narrower)[-len(mask) :]
    narrower.train()
    if not fused:
        narrower.encoder.layers[0].register_forward_post_hook(lambda *_: None)  # the layers are called
    with once:
        found = encoded(narrower, mask, cls_only=cls_only).pooled_output
    found.sum().backward()
    close(found.numpy(), wanted)
    assert all(each.grad is not None for each in narrower.parameters())


def test_the_order_of_heads_and_neurons_does_not_matter(encoder):
    before = outputs(encoder)
    generator = np.random.default_rng(0)
    layers = range(FOUR.num_hidden_layers)
    heads = [generator.permutation(FOUR.num_attention_heads) for _ in layers]
    neurons = [generator.permutation(FOUR.intermediate_size) for _ in layers]
    old = encoder.encoder.layers[1].linear1.bias.numpy()
    sort_parts(encoder, heads, neurons)
    np.testing.assert_array_equal(encoder.encoder.layers[1].linear1.bias.numpy(), old[neurons[1]])
    close(outputs(encoder), before)


def test_a_narrowed_encoder_is_saved_and_loaded(encoder, tmp_path):
    narrower = narrow(encoder, 0.5)
    narrower.save_pretrained(tmp_path)
    again = load_encoder(tmp_path)
    assert again.config == narrower.config
    assert again.config.head_size == FOUR.head_size
    np.testing.assert_array_equal(outputs(again), outputs(narrower))


@pytest.mark.parametrize("layout", ["huggingface", "paddlenlp"])
def test_layouts_of_others_are_refused(layout, encoder, tmp_path):
    with pytest.raises(WeightsError, match="head"):
        narrow(encoder, 0.5).save_pretrained(tmp_path, layout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", [0, -1, 1.01, float("nan")])
def test_no_width(width, encoder):
    with pytest.raises(CompositionError, match="width"):
        narrow(encoder, width)


def test_xlnet_is_refused():
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    with pytest.raises(CompositionError, match="XLNet"):
        narrow(new_encoder(XLNetConfig(**{name: getattr(FOUR, name) for name in names})), 0.5)


def test_the_config_of_whole_encoders_names_no_head_size(tmp_path):
    assert "head_dim" not in FOUR.to_dict()
    narrower = narrowed_config(FOUR, 0.5)
    assert narrower.to_dict()["head_dim"] == FOUR.head_size
    assert EncoderConfig.from_dict(narrower.to_dict()) == narrower


# -- sharing -----------------------------------------------------------------------------------------------------------


def test_a_narrowed_view_shares_what_is_not_cut_and_takes_the_rest(encoder):
    view = Narrowed(encoder, 0.5)
    own, whole = dict(view.encoder.named_parameters()), dict(encoder.named_parameters())
    assert own.keys() == whole.keys()
    shared = {path for path in own if own[path] is whole[path]}
    assert "embeddings.word_embeddings.weight" in shared
    assert "encoder.layers.0.linear1.weight" not in shared
    whole["encoder.layers.0.linear1.weight"].set_value(whole["encoder.layers.0.linear1.weight"] * 2)
    view.take()
    np.testing.assert_array_equal(outputs(view.encoder), outputs(narrow(encoder, 0.5)))


def test_a_narrowed_view_gives_its_gradients_where_they_belong(encoder):
    view = Narrowed(encoder, 0.5)
    view.take()
    twice = []
    for _ in range(2):
        encoded(view.encoder, np.array(MASKS["holes"])).pooled_output.sum().backward()
        view.give()
        twice.append({path: each.grad.numpy() for path, each in encoder.named_parameters()})
    reference = narrow(encoder, 0.5)
    encoded(reference, np.array(MASKS["holes"])).pooled_output.sum().backward()
    for path, parameter in reference.named_parameters():
        wanted = parameter.grad.numpy()
        for times, found in enumerate(twice, start=1):
            kept = tuple(slice(size) for size in wanted.shape)
            close(found[path][kept], wanted * times)
            assert np.abs(found[path]).sum() == pytest.approx(np.abs(found[path][kept]).sum())
    assert all(each.grad is None for path, each in view.encoder.named_parameters() if "linear1" in path)
