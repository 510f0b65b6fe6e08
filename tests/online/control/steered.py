"""A small run that can be steered, with everything that depends on it: dropout, Adam, a switch, a tester."""

import numpy as np
import paddle

from onion import Forward, GradientMachine, Observer, ParameterUpdater, Runner, RunnerItem, Saver, Tester
from onion.online.control.control_server import ControlServer
from onion.online.journal.journal import Journal
from onion.online.learning.switch import Switch
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import Batches


class Network(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        paddle.seed(7)
        self.fc, self.dropout = paddle.nn.Linear(4, 1), paddle.nn.Dropout(0.3)

    def forward(self, batch):
        return self.fc(self.dropout(batch["x"]))

    def loss(self, outputs, batch):
        return ((outputs - batch["y"]) ** 2).mean()


class Double(RunnerItem):
    """A ring that changes what is learned: the inputs are doubled."""

    def on_batch(self, state):
        state.batch = {**state.batch, "x": state.batch["x"] * 2}
        yield


def samples(count):
    random = np.random.default_rng(3)
    return [{"x": x.tolist(), "y": [float(x.sum())]} for x in random.standard_normal((count, 4)).astype("float32")]


def as_arrays(sample):
    return {name: np.asarray(value, "float32") for name, value in sample.items()}


def steered(source, folder, *, at=None, every=3, batch_size=4, **settings):
    """Return a runner; ``at(state)`` is called at the end of each batch, inside of everything but the machine."""
    network = Network()
    optimizer = paddle.optimizer.Adam(0.05, parameters=network.parameters())
    test = Runner(Batches([{"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}]), Forward(network))
    control = ControlServer(port=None)
    return Runner(
        Saver(folder, every=every, keep_last=3),
        Journal(),
        Tester(test, every=10_000),
        StreamProvider(source, batch_size, prepare=as_arrays, **{"pass_every": 20, "max_wait": 0, **settings}),
        control,
        Switch(Double(), on=False),
        ParameterUpdater(optimizer),
        *([Observer(on_batch_end=at)] if at else []),
        GradientMachine(network),
    )


def weights(runner):
    return {path: value.numpy().tobytes() for path, value in runner[GradientMachine].network.state_dict().items()}
