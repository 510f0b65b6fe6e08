"""Which code computes the layers; that each gives the same numbers is shown beside it."""

import numpy as np
import paddle
import pytest

from onion.engine.backward import once
from onion.models.fused import dispatch
from onion.models.fused.training import stack
from tests.models.helpers import small_encoder

IDS = np.array([[5, 6, 7], [8, 9, 0]])


@pytest.fixture
def taken(monkeypatch):
    """The paths that were taken, in order."""
    paths = []

    def noting(name, function):
        return lambda *given: paths.append(name) or function(*given)

    monkeypatch.setattr(dispatch, "transform", noting("prediction", dispatch.transform))
    monkeypatch.setattr(stack, "run", noting("training", stack.run))
    return paths


def test_prediction_and_training_have_a_path_each(taken):
    encoder = small_encoder()
    with paddle.no_grad():
        encoder(IDS)
    encoder.train()
    with once:
        encoder(IDS)
    encoder(IDS)  # nobody says that there is one way back
    assert taken == ["prediction", "training"]


def test_who_looks_at_all_layers_at_once_is_shown_them_in_training(taken):
    encoder, seen = small_encoder(), []
    encoder.train()
    hook = encoder.encoder.register_forward_post_hook(lambda layers, given, out: seen.append(out))
    with once:
        encoder(IDS)
        hook.remove()
        encoder(IDS)
    assert len(seen) == 1
    assert taken == ["training"]


def test_layers_with_a_forward_of_their_own_are_called(taken):
    class Doubled(type(small_encoder().encoder)):
        def forward(self, x, packing, firsts_only=False):
            return super().forward(x, packing, firsts_only) * 2

    encoder = small_encoder()
    encoder.train()
    with once:
        plain = encoder(IDS).packed.numpy()
        encoder.encoder.__class__ = Doubled
        np.testing.assert_allclose(encoder(IDS).packed.numpy(), 2 * plain, atol=1e-5)
    assert taken == ["training"]
