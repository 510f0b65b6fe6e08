"""Where only the first tokens are read, the last layer computes no others: same vectors, same gradients."""

from contextlib import nullcontext

import numpy as np
import paddle
import pytest

from onion import DataError
from onion.engine.backward import once
from onion.models.fused import inference
from onion.models.hidden_states import record_hidden_states
from tests.models.helpers import MASKS, RAGGED, VARIANTS, close, encoded, small_encoder


@pytest.mark.parametrize("way", [paddle.no_grad, nullcontext], ids=["lean", "layers"])
@pytest.mark.parametrize("padding", MASKS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_pooled_output_is_the_same(variant, padding, way):
    encoder, mask = small_encoder(config=VARIANTS[variant]), np.array(MASKS[padding])
    with way():
        whole, firsts = (encoded(encoder, mask, cls_only=cls_only) for cls_only in (False, True))
        close(whole.pooled_output.numpy(), firsts.pooled_output.numpy())
        close(whole.cls.numpy(), firsts.cls.numpy())
    assert firsts.cls.shape == [len(mask), encoder.config.hidden_size]


@pytest.mark.parametrize("most", [1, 4, 9, 12, 23])
def test_pieces_do_not_matter(most, monkeypatch):
    encoder = small_encoder()
    with paddle.no_grad():
        expected = encoded(encoder, RAGGED).pooled_output.numpy()
        monkeypatch.setattr(inference, "PIECE", most)
        close(expected, encoded(encoder, RAGGED, cls_only=True).pooled_output.numpy())


@pytest.mark.parametrize("way", [once, nullcontext()], ids=["by hand", "layers"])
@pytest.mark.parametrize("padding", MASKS)
def test_the_gradients_are_the_same(padding, way, monkeypatch):
    monkeypatch.setattr("onion.models.fused.training.runtime.FEWEST", 1)  # so that there are parts to join
    encoder, mask = small_encoder(), np.array(MASKS[padding])
    for layer in encoder.sublayers(include_self=True):
        layer.training = True
    found = []
    for cls_only in (False, True):
        with way:
            encoded(encoder, mask, cls_only=cls_only).pooled_output.square().sum().backward()
        found.append({name: each.grad.numpy() for name, each in encoder.named_parameters() if each.grad is not None})
        encoder.clear_gradients()
    whole, firsts = found
    assert whole.keys() == firsts.keys()
    assert whole
    for name, gradient in whole.items():
        np.testing.assert_allclose(firsts[name], gradient, atol=1e-5, rtol=1e-4, err_msg=name)


def test_other_vectors_are_not_there(monkeypatch):
    firsts = encoded(small_encoder(), np.ones((2, 3), bool), cls_only=True)
    with pytest.raises(DataError, match="called with cls_only and has computed no vectors of other tokens"):
        firsts.packed  # noqa: B018 - that it is read is what is refused
    with pytest.raises(DataError, match="called with cls_only and has computed no vectors of other tokens"):
        firsts.sequence_output  # noqa: B018


def test_who_looks_into_the_last_layer_sees_all_tokens():
    encoder, mask = small_encoder(), np.ones((2, 3), bool)
    with paddle.no_grad(), record_hidden_states(encoder) as inside:
        pooled = encoded(encoder, mask, cls_only=True).pooled_output.numpy()
    assert inside.hidden[2].shape[0] == 6
    with paddle.no_grad():
        close(pooled, encoded(encoder, mask, cls_only=True).pooled_output.numpy())


def test_less_is_computed():
    """The last layer's feed-forward network is given one token a row."""
    encoder, seen = small_encoder(), []
    layer = encoder.encoder.layers[-1]
    activation = layer.activation
    layer.activation = lambda x: seen.append(x.shape[0]) or activation(x)
    for cls_only in (False, True):
        encoded(encoder, np.ones((2, 3), bool), cls_only=cls_only)
    assert seen == [6, 2]
