"""LoRA: the adapters' formula, their gradients on every path, and merging."""

import copy

import numpy as np
import paddle
import pytest

from onion.engine.backward import many, once
from onion.errors import CompositionError
from onion.models.auto import load_encoder, new_encoder
from onion.models.electra.config import ElectraConfig
from onion.models.fused import dispatch
from onion.models.fused.training import stack
from onion.models.lora import FrozenPart, TrainedPart, add_lora, merge_lora
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.xlnet.config import XLNetConfig
from onion.tasks.networks.distillation import with_layers
from onion.tasks.networks.heads import SentenceHead
from tests.abilities import needs_layers_by_hand
from tests.models.helpers import SMALL

SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
NO_DROPOUT = {"hidden_dropout_prob": 0.0}
CONFIGS = {
    "bert": SMALL,
    "electra": ElectraConfig(
        embedding_size=8,
        intermediate_size=48,
        max_position_embeddings=16,
        attention_probs_dropout_prob=0.0,
        **SIZES,
        **NO_DROPOUT,
    ),
    "xlnet": XLNetConfig(intermediate_size=48, **SIZES, **NO_DROPOUT),
}
RANDOM = np.random.default_rng(1)
BATCH = {
    "input_ids": RANDOM.integers(1, 40, (30, 14)),
    "attention_mask": np.arange(14) < RANDOM.integers(1, 15, (30, 1)),
}


def encoder_of(family="bert"):
    paddle.seed(1)
    return new_encoder(CONFIGS[family])


def trained(network):
    """Give the adapters values as a training would."""
    for path, parameter in network.named_parameters():
        if path.endswith("_lora.B"):
            parameter.set_value(paddle.randn(parameter.shape) * 0.3)
    return network


def outputs(encoder):
    encoder.eval()
    with paddle.no_grad():
        return encoder(**BATCH).packed.numpy()


def learned(encoder):
    """The output in training, and the gradients."""
    encoder.train()
    out = encoder(**BATCH).packed
    (out**3).sum().backward()
    found = {name: each.grad.numpy() for name, each in encoder.named_parameters() if each.grad is not None}
    for each in encoder.parameters():
        each.clear_gradient(False)
    return out.numpy(), found


def test_an_adapter_adds_the_low_rank_product_of_the_paper():
    encoder = encoder_of()
    add_lora(encoder, rank=4, alpha=6)
    layer = trained(encoder).encoder.layers[1].self_attn.v_proj
    x = paddle.randn([5, 24])
    A, B = layer.weight_lora.A.numpy(), layer.weight_lora.B.numpy()  # noqa: N806
    expected = x.numpy() @ (layer.weight.numpy() + 6 / 4 * A @ B) + layer.bias.numpy()
    np.testing.assert_allclose(layer(x).numpy(), expected, atol=1e-5)


def test_a_starts_kaiming_uniform_and_b_at_zero_so_nothing_changes_at_first():
    encoder = encoder_of()
    before = outputs(encoder)
    add_lora(encoder, rank=8)
    adapter = encoder.encoder.layers[0].self_attn.q_proj.weight_lora
    assert (adapter.A.shape, adapter.B.shape) == ([24, 8], [8, 24])
    assert 0.8 < abs(adapter.A.numpy()).max() * 24**0.5 <= 1
    assert not adapter.B.numpy().any()
    assert adapter.scale.tolist() == [2.0]
    np.testing.assert_array_equal(outputs(encoder), before)


@pytest.mark.parametrize(
    ("family", "targets", "names"),
    [
        ("bert", (), {"q_proj", "v_proj"}),
        ("electra", ("linear?", "out_proj"), {"linear1", "linear2", "out_proj"}),
        ("bert", "*", {"q_proj", "k_proj", "v_proj", "out_proj", "linear1", "linear2"}),
        ("xlnet", (), {"q", "v"}),
        ("xlnet", ("*",), {"q", "k", "v", "layer_1", "layer_2"}),
    ],
)
def test_adapters_and_the_pooler_are_trained_and_nothing_else(family, targets, names):
    encoder = encoder_of(family)
    add_lora(encoder, rank=2, targets=targets)
    paths = [path for path, each in encoder.named_parameters() if not each.stop_gradient]
    adapted = {path for path in paths if not path.startswith("pooler.")}
    assert len(adapted) == 2 * 2 * len(names)
    assert {path.split(".weight_lora")[0].split("_lora")[0].rpartition(".")[2] for path in adapted} == names
    assert {"pooler.dense.weight", "pooler.dense.bias"} == set(paths) - adapted


@pytest.mark.parametrize("family", CONFIGS)
def test_every_path_computes_the_same_and_merging_changes_nothing(family, tmp_path):
    encoder = encoder_of(family)
    add_lora(encoder, rank=4, targets=["*"])
    trained(encoder)
    with many:
        plain, gradients = learned(encoder)
    with once:
        fused, fused_gradients = learned(encoder)
    np.testing.assert_allclose(fused, plain, atol=1e-5)
    assert fused_gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(fused_gradients[name], gradient, rtol=0, atol=3e-5 * abs(gradient).max())
    unmerged = outputs(encoder)
    np.testing.assert_allclose(unmerged, plain, atol=1e-5)
    encoder.save_pretrained(tmp_path)
    np.testing.assert_allclose(outputs(load_encoder(tmp_path)), unmerged, atol=1e-5)
    merge_lora(encoder)
    assert encoder.state_dict().keys() == encoder_of(family).state_dict().keys()
    assert not any(parameter.stop_gradient for parameter in encoder.parameters())
    np.testing.assert_allclose(outputs(encoder), unmerged, atol=1e-5)


def test_whatever_copies_an_encoder_copies_it_merged(tmp_path):
    encoder = encoder_of()
    add_lora(encoder, rank=4)
    expected = outputs(trained(encoder))
    np.testing.assert_allclose(outputs(with_layers(encoder, [1, 2])), expected, atol=1e-5)
    EncoderForPretraining(encoder).save_pretrained(tmp_path)
    np.testing.assert_allclose(outputs(load_encoder(tmp_path)), expected, atol=1e-5)


@needs_layers_by_hand
def test_the_fused_layers_train_adapters_without_dropout_and_predict_with_all(monkeypatch):
    calls = []

    def note(module, name):
        run = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: calls.append(name) or run(*given))

    note(stack, "run")
    note(dispatch, "transform")
    for dropout, expected in ((0.0, ["run", "transform"]), (0.1, ["transform"])):
        calls.clear()
        encoder = encoder_of()
        add_lora(encoder, rank=2, dropout=dropout)
        with once:
            learned(encoder)
        outputs(encoder)
        assert calls == expected


def test_dropout_is_of_the_adapters_input():
    encoder = encoder_of()
    add_lora(encoder, rank=2, dropout=0.5)
    trained(encoder).train()
    layer, x = encoder.encoder.layers[0].self_attn.q_proj, paddle.ones([200, 24])
    spread = (layer(x) - layer(x)).abs().max().item()
    layer.eval()
    assert spread > 0.01
    assert (layer(x) - layer(x)).abs().max().item() == 0


def test_a_hook_on_an_adapter_is_called():
    encoder = encoder_of()
    add_lora(encoder, rank=2)
    called = []
    encoder.encoder.layers[0].self_attn.q_proj.weight_lora.register_forward_post_hook(lambda *given: called.append(1))
    outputs(encoder)
    assert called


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_a_network_has_a_trained_and_a_frozen_part():
    network = SentenceHead(encoder_of(), 3)
    add_lora(network, rank=2)
    learned_part, frozen = TrainedPart(network), FrozenPart(network)
    assert {*learned_part.state_dict(), *frozen.state_dict()} == set(network.state_dict())
    assert not learned_part.state_dict().keys() & frozen.state_dict().keys()
    assert {path.partition(".")[0] for path in frozen.state_dict()} == {"encoder"}
    assert "encoder.encoder.layers.0.self_attn.q_proj.weight_lora.scale" in learned_part.state_dict()
    copied = copy.deepcopy(learned_part)
    assert copied.network is not network
    assert copied.state_dict().keys() == learned_part.state_dict().keys()


def test_what_is_trained_although_it_is_frozen_is_not_silently_lost():
    network = SentenceHead(encoder_of(), 3)
    add_lora(network, rank=2)
    network.encoder.encoder.layers[1].norm1.weight.stop_gradient = False
    with pytest.raises(CompositionError, match=r"layers\.1\.norm1\.weight is trained.*leave out the Unfreeze"):
        TrainedPart(network).state_dict()


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"targets": ["query"]}, "no linear layer of the encoder is called 'query'; there are 'q_proj', 'k_proj'"),
        ({"rank": 0}, "rank must be an integer >= 1"),
        ({"rank": 25}, r"rank 25 is more than q_proj has, \(24, 24\)"),
        ({"rank": "8"}, "rank must be an integer >= 1, got '8'"),
        ({"alpha": 0}, "alpha must be a number > 0, got 0"),
        ({"dropout": 1}, "dropout must be a number >= 0 and < 1, got 1"),
    ],
)
def test_what_is_refused_changes_nothing(given, what):
    encoder = encoder_of()
    with pytest.raises(CompositionError, match=what):
        add_lora(encoder, **given)
    assert not any(parameter.stop_gradient for parameter in encoder.parameters())
    assert encoder.state_dict().keys() == encoder_of().state_dict().keys()


def test_adapters_are_added_once_and_to_encoders_only():
    encoder = encoder_of()
    add_lora(encoder)
    with pytest.raises(CompositionError, match=r"has adapters already; merge_lora\(network\) merges them first"):
        add_lora(encoder)
    with pytest.raises(CompositionError, match="LoRA is for an encoder, or a network with one as encoder, not Linear"):
        add_lora(paddle.nn.Linear(2, 2))
