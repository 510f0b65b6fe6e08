"""Forward: outputs in evaluation mode, without gradients, and every layer's mode put back."""

import numpy as np
import paddle
import pytest

from onion import Forward, Observer, Runner
from onion.testing import Batches, Failing, PlannedError, toy_network


class Deep(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.frozen = paddle.nn.Sequential(paddle.nn.Linear(8, 4), paddle.nn.BatchNorm1D(4))
        self.dropout = paddle.nn.Dropout(0.5)
        self.head = paddle.nn.Linear(4, 1)
        self.frozen.eval()

    def forward(self, batch):
        return self.head(self.dropout(self.frozen(batch["x"])))


def modes(network):
    return [(name, layer.training) for name, layer in network.named_sublayers(include_self=True)]


def one_batch():
    return {"x": np.ones((2, 8), "float32"), "y": np.ones((2, 1), "float32")}


def test_every_layer_gets_its_mode_back_at_the_end_a_frozen_one_too():
    network = Deep()
    before, inside = modes(network), []
    Runner(
        Batches([one_batch()]),
        Observer(on_batch_end=lambda state: inside.extend(modes(network))),
        Forward(network),
    ).run(passes=1)
    assert not any(training for _, training in inside)
    assert modes(network) == before
    assert len(set(dict(before).values())) == 2


@pytest.mark.parametrize(
    ("hook", "way"), [("on_pass", "in"), ("on_batch", "in"), ("on_batch", "out"), ("on_pass", "out")]
)
@pytest.mark.parametrize("place", ["outside", "inside"])
def test_every_layer_gets_its_mode_back_after_an_error(hook, way, place):
    network = Deep()
    before = modes(network)
    rings = [Failing(hook, way), Forward(network)]
    with pytest.raises(PlannedError):
        Runner(Batches([one_batch()]), *(rings if place == "outside" else reversed(rings))).run(passes=1)
    assert modes(network) == before


def test_dropout_is_off():
    network = Deep()
    batches = [one_batch(), one_batch()]
    outputs = []
    collect = Observer(on_batch_end=lambda state: outputs.append(state.outputs.numpy().tobytes()))
    Runner(Batches(batches), collect, Forward(network)).run(passes=1)
    assert outputs[0] == outputs[1]


def test_no_gradients_are_made_and_running_means_stay():
    network = Deep()
    network.frozen.train()
    mean = network.frozen[1]._mean.numpy().tobytes()
    state = Runner(Batches([one_batch()]), Forward(network, loss=lambda outputs, batch: outputs.mean())).run(passes=1)
    assert state.outputs.stop_gradient
    assert state.loss.stop_gradient
    assert all(parameter.grad is None for parameter in network.parameters())
    assert network.frozen[1]._mean.numpy().tobytes() == mean


def test_without_a_loss_function_there_is_no_loss_and_batches_need_no_labels():
    state = Runner(Batches([{"x": np.ones((2, 8), "float32")}]), Forward(toy_network())).run(passes=1)
    assert state.loss is None
    assert list(state.outputs.shape) == [2, 1]


def test_with_a_loss_function_the_loss_is_on_the_state():
    network = toy_network()
    state = Runner(Batches([one_batch()]), Forward(network, network.loss)).run(passes=1)
    assert float(state.loss) == float(((state.outputs - 1) ** 2).mean())


def test_two_passes_and_two_runs_work():
    network = Deep()
    before = modes(network)
    runner = Runner(Batches([one_batch()]), Forward(network))
    runner.run(passes=2)
    runner.run(passes=2)
    assert modes(network) == before
