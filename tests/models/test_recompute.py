"""Gradient checkpointing: less is kept, and every bit is the same."""

import attrs
import numpy as np
import paddle
import pytest

from onion.engine.backward import explained, many, once
from onion.errors import CompositionError, OnionError
from onion.models import recompute
from onion.models.auto import new_encoder
from onion.models.electra.config import ElectraConfig
from onion.models.fused.training import stack
from onion.models.hidden_states import record_hidden_states
from onion.models.xlnet.config import XLNetConfig
from tests.abilities import needs_draws_again
from tests.models.helpers import SMALL

SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
DROPOUT = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3}
CONFIGS = {
    "bert": attrs.evolve(SMALL, num_hidden_layers=3, **DROPOUT),
    "electra": ElectraConfig(embedding_size=8, intermediate_size=48, max_position_embeddings=16, **SIZES, **DROPOUT),
    "xlnet": XLNetConfig(intermediate_size=48, hidden_dropout_prob=0.2, **SIZES),
}
RANDOM = np.random.default_rng(1)
BATCH = {
    "input_ids": RANDOM.integers(1, 40, (30, 14)),
    "attention_mask": np.arange(14) < RANDOM.integers(1, 15, (30, 1)),
}


def encoder_of(family, recomputing=True):
    paddle.seed(1)
    encoder = new_encoder(CONFIGS[family])
    encoder.train()
    encoder.gradient_checkpointing = recomputing
    return encoder


def learned(encoder, cls_only=False):
    """The output, all gradients, and what is drawn next, as bytes."""
    paddle.seed(7)
    encoded = encoder(**BATCH, cls_only=cls_only)
    out = encoded.pooled_output if cls_only else encoded.packed
    (out**3).sum().backward()
    found = {name: each.grad.numpy().tobytes() for name, each in encoder.named_parameters() if each.grad is not None}
    for each in encoder.parameters():
        each.clear_gradient(False)
    return {**found, "output": out.numpy().tobytes(), "drawn": paddle.rand([4]).numpy().tobytes()}


@pytest.fixture
def computed(monkeypatch):
    """How often a layer was computed by hand, and how often by Paddle's recomputation."""
    found, forward, call = [], stack.one.forward, recompute.recompute
    monkeypatch.setattr(stack.one, "forward", lambda *given: found.append("by hand") or forward(*given))
    monkeypatch.setattr(recompute, "recompute", lambda *given: found.append("recompute") or call(*given))
    return found


def hook_on_a_layer(encoder):
    """Make the layers be called one by one."""
    (layer,) = (each for path, each in encoder.named_sublayers() if path == f"{encoder.layers_path}.1")
    layer.register_forward_post_hook(lambda *given: None)


@needs_draws_again
@pytest.mark.parametrize("frozen", ["nothing", "embedding", "0."])
@pytest.mark.parametrize("cls_only", [False, True])
@pytest.mark.parametrize("family", [*CONFIGS, "bert with a hook"])
def test_gradients_and_random_numbers_are_the_same_to_the_bit(family, cls_only, frozen, computed):
    encoder = encoder_of(family.split()[0], recomputing=False)
    if "hook" in family:
        hook_on_a_layer(encoder)
    for name, parameter in encoder.named_parameters():
        parameter.stop_gradient = frozen in name
    with once:
        kept = learned(encoder, cls_only)
        by_hand = len(computed)
        encoder.gradient_checkpointing = True
        assert learned(encoder, cls_only) == kept
    assert len(computed) == (3 * by_hand or 3)  # each layer once more than without, or by Paddle


def test_a_layer_that_learns_nothing_is_not_computed_again(computed):
    encoder = encoder_of("xlnet")
    for parameter in encoder.parameters():
        parameter.stop_gradient = True
    with once:
        encoder(**BATCH)
    assert computed == []


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_where_more_than_one_way_back_is_possible_everything_is_kept(family, computed):
    encoder = encoder_of(family)
    with many:
        loss = encoder(**BATCH).packed.square().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert computed == []


WAYS_BACK = {
    "retain_graph=True": lambda loss, encoder: loss.backward(retain_graph=True),
    "paddle.grad": lambda loss, encoder: paddle.grad(loss, [encoder.word_embedding.weight]),
}


@pytest.mark.parametrize("asked", WAYS_BACK)
def test_other_ways_back_are_refused_with_the_remedy(asked):
    encoder = encoder_of("xlnet")
    with once:
        loss = encoder(**BATCH).packed.square().sum()
    why = rf"{asked} is not supported by layers that are recomputed.*backward\.many"
    with pytest.raises(OnionError, match=why), explained:
        WAYS_BACK[asked](loss, encoder)


def test_hidden_states_cannot_be_recorded_in_training():
    encoder = encoder_of("bert")
    with pytest.raises(CompositionError, match=r"set encoder\.gradient_checkpointing"), record_hidden_states(encoder):
        pass
    encoder.eval()
    with record_hidden_states(encoder) as inside, paddle.no_grad():
        encoder(**BATCH)
    assert sorted(inside.hidden) == [0, 1, 2, 3]
