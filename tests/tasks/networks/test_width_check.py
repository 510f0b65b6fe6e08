"""Whether a head takes the encoder's vectors: told for sure, or not at all."""

import paddle
import pytest

from onion import CompositionError
from onion.checkpointing import rng
from onion.models.encoder import Encoder
from onion.tasks.batches import arguments
from onion.tasks.networks.width_check import refuse_unfit
from onion.tasks.registry import TASKS, get_task
from tests.tasks.helpers import HIDDEN


@pytest.fixture
def encoder(encoder_folder):
    return Encoder.from_pretrained(encoder_folder)


class Own(paddle.nn.Layer):
    """A network of a user, with layers one after the other over the pooled output."""

    def __init__(self, encoder, *layers, field=None):
        super().__init__()
        self.encoder, self.layers, self.field = encoder, paddle.nn.Sequential(*layers), field
        self.calls = 0

    def forward(self, batch):
        self.calls += 1
        assert not self.training
        assert self.field is None or batch[self.field]
        return self.layers(self.encoder(**arguments(batch)).pooled_output)


class Drawing(paddle.nn.Layer):
    def forward(self, vectors):
        return vectors + paddle.randn(vectors.shape)


def linear(taken, given=2):
    return paddle.nn.Linear(taken, given)


@pytest.mark.parametrize("taken", [HIDDEN // 2, HIDDEN * 2])
def test_a_layer_of_another_width_is_named_with_both(encoder, taken):
    network = Own(encoder, paddle.nn.Dropout(0.1), linear(taken))
    with pytest.raises(CompositionError, match=rf"^mine does not .*: layers.1 takes vectors of {taken} .*{HIDDEN}"):
        refuse_unfit(network, "mine")


def test_what_fits_is_not_run_and_layers_further_on_have_their_own_width(encoder):
    simple = Own(encoder, linear(HIDDEN))
    refuse_unfit(simple, "mine")
    assert simple.calls == 0
    deep = Own(encoder, linear(HIDDEN, 7), linear(7))
    refuse_unfit(deep, "mine")
    assert deep.calls == 1


@pytest.mark.parametrize("name", TASKS)
def test_the_networks_of_all_tasks_fit(encoder, name):
    settings = {"labels": ("bad", "good")} if name in ("classification", "multilabel", "token-classification") else {}
    refuse_unfit(get_task(name, settings).network(encoder), name)


def test_no_trace_is_left(encoder):
    network = Own(encoder, Drawing(), linear(HIDDEN, 7), paddle.nn.Dropout(0.5), linear(7))
    network.layers[2].eval()
    before = rng.capture()
    refuse_unfit(network, "mine")
    assert network.calls == 1
    assert rng.capture() == before
    assert network.training
    assert not network.layers[2].training
    assert not any(layer._forward_pre_hooks for layer in network.sublayers())


def test_other_batches_and_other_errors_are_let_be(encoder):
    refuse_unfit(Own(encoder, linear(HIDDEN, 7), linear(8), field="image"), "mine")
    longer = Own(encoder, paddle.nn.Flatten(0), paddle.nn.Unflatten(0, [1, 16, 2]), linear(16))  # not on one token
    refuse_unfit(longer, "mine")
    assert longer.calls == 1


def test_an_encoder_that_does_not_tell_its_width_is_let_be():
    network = Own(linear(8, 16), linear(9))
    refuse_unfit(network, "mine")
    assert network.calls == 0
