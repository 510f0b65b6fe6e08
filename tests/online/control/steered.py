"""A small run that can be controlled, with everything that depends on it: dropout, Adam, a switch, a tester."""

import random
from contextlib import nullcontext

import numpy as np
import paddle
import pytest

from onion import Forward, GradientMachine, Observer, ParameterUpdater, Runner, RunnerItem, Saver, Tester
from onion.online.control.control_server import ControlServer
from onion.online.journal.journal import Journal
from onion.online.learning.switch import Switch
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import Batches, PlannedError
from tests.online.toys import Line

RATE = "parameter_updater.learning_rate"
PLAN = {
    2: [("set", {RATE: 0.2})],
    4: [("enable", {"ring": "double"}), ("save", {})],
    5: [("set", {RATE: 0.02})],
    7: [("pause", {}), ("resume", {})],
    8: [("disable", {"ring": "double"}), ("test", {})],
    11: [("enable", {"ring": "double"})],
}
"""Commands at the ends of steps."""


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
    """Doubles the inputs, which changes what is learned."""

    def on_batch(self, state):
        state.batch = {**state.batch, "x": state.batch["x"] * 2}
        yield


def samples(count):
    numbers = np.random.default_rng(3)
    return [{"x": x.tolist(), "y": [float(x.sum())]} for x in numbers.standard_normal((count, 4)).astype("float32")]


def slowly(seed, count):
    """Return a source whose samples arrive in random portions, so that batches have other sizes with each seed."""
    every, chance = samples(count), random.Random(seed)

    def come(line):
        there = len(line.samples)
        line.samples += every[there : there + chance.randint(0, 5)]

    return Line((), come)


def as_arrays(sample):
    return {name: np.asarray(value, "float32") for name, value in sample.items()}


def steered(source, folder, *, at=None, every=3, batch_size=4, **settings):
    """Return a runner; ``at(state)`` is called at the end of each batch, inside of everything but the machine."""
    network = Network()
    optimizer = paddle.optimizer.Adam(0.05, parameters=network.parameters())
    test = Runner(Batches([{"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}]), Forward(network))
    return Runner(
        Saver(folder, every=every, keep_last=3),
        Journal(),
        Tester(test, every=10_000),
        StreamProvider(source, batch_size, prepare=as_arrays, **{"pass_every": 20, "max_wait": 0, **settings}),
        ControlServer(port=None),
        Switch(Double(), on=False),
        ParameterUpdater(optimizer),
        *([Observer(on_batch_end=at)] if at else []),
        GradientMachine(network),
    )


class Script:
    """Gives the commands of a plan in the thread of the run: they take effect at the next batch boundary.

    Args:
        plan: step -> what to do at its end: ``(command, arguments)`` or ``(command, arguments, key)``.
        dies_at: the step at whose end to fail.
    """

    def __init__(self, plan, dies_at=None):
        self.plan, self.dies_at, self.answers = plan, dies_at, []

    def __call__(self, state):
        for command, arguments, *key in self.plan.get(state.next_step, ()):
            control = state.runner[ControlServer]
            self.answers.append(control.ask(command, arguments, *(key or [f"{state.next_step}-{command}"])))
        if state.next_step == self.dies_at:
            raise PlannedError


def run(folder, plan=None, *, source=None, steps=20, dies_at=None, change=None, look=None, **settings):
    """Run a plan, by default over 80 samples; return the runner and the answers.

    ``change(runner)`` is called before the run, ``look(state)`` at the end of each batch.
    """
    script = Script(plan or {}, dies_at)

    def at(state):
        script(state)
        if look is not None:
            look(state)

    runner = steered(source or Line(samples(80)), folder, at=at, **settings)
    if change is not None:
        change(runner)
    with nullcontext() if dies_at is None else pytest.raises(PlannedError):
        runner.run(steps=steps)
    return runner, script.answers


def weights(runner):
    return {path: value.numpy().tobytes() for path, value in runner[GradientMachine].network.state_dict().items()}
