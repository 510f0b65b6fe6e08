"""Forward: outputs in evaluation mode, without gradients, and every layer's mode put back."""

import numpy as np
import paddle
import pytest

from onion import Forward, Runner
from onion.testing import Batches, Failing, PlannedError, toy_network
from tests.items.learning import toy_batches
from tests.rings import Watch


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
    return [layer.training for layer in network.sublayers(include_self=True)]


def test_every_layer_has_its_mode_again_after_each_pass_and_run():
    network = Deep()
    before = modes(network)
    inside, outside = Watch(lambda state: any(modes(network))), Watch(lambda state: modes(network), "on_pass_end")
    runner = Runner(outside, Batches(toy_batches(1, 2)), inside, Forward(network))
    for _ in range(2):
        runner.run(passes=2)
    assert inside.seen == [False] * 4
    assert outside.seen == [before] * 4
    assert set(before) == {True, False}


@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("hook", ["on_pass", "on_batch"])
@pytest.mark.parametrize("place", ["outside", "inside"])
def test_every_layer_has_its_mode_again_after_an_error(hook, way, place):
    network = Deep()
    before = modes(network)
    rings = [Failing(hook, way), Forward(network)]
    with pytest.raises(PlannedError):
        Runner(Batches(toy_batches(1, 2)), *(rings if place == "outside" else reversed(rings))).run(passes=1)
    assert modes(network) == before


def test_dropout_is_off_running_means_stay_and_no_gradients_are_made():
    network = Deep()
    network.frozen.train()
    mean = network.frozen[1]._mean.numpy().tobytes()
    outputs = Watch(lambda state: state.outputs.numpy().tobytes(), "on_batch_end")
    forward = Forward(network, loss=lambda outputs, batch: outputs.mean())
    state = Runner(Batches(toy_batches(1, 2) * 2), outputs, forward).run(passes=1)
    assert len(set(outputs.seen)) == 1
    assert state.outputs.stop_gradient
    assert state.loss.stop_gradient
    assert all(parameter.grad is None for parameter in network.parameters())
    assert network.frozen[1]._mean.numpy().tobytes() == mean


def test_a_loss_is_computed_where_there_is_a_function_for_it():
    network, (batch,) = toy_network(), toy_batches(1, 2)
    state = Runner(Batches([batch]), Forward(network, network.loss)).run(passes=1)
    assert float(state.loss) == pytest.approx(np.square(state.outputs.numpy() - batch["y"]).mean())
    state = Runner(Batches([{"x": batch["x"]}]), Forward(network)).run(passes=1)
    assert state.loss is None
    assert list(state.outputs.shape) == [2, 1]
