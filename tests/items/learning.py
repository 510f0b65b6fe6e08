"""Small trainings for the tests of items: an updater and a machine over a toy network, and what they come to."""

import numpy as np
import paddle
import pytest

from onion import CompositionError, DataProvider, GradientMachine, ParameterUpdater, Runner
from onion.data import collate
from onion.testing import toy_examples, toy_network

OPTIMIZERS = {
    "sgd": lambda p: paddle.optimizer.SGD(0.05, parameters=p),
    "momentum": lambda p: paddle.optimizer.Momentum(0.05, parameters=p, use_nesterov=True, weight_decay=0.01),
    "adam": lambda p: paddle.optimizer.Adam(0.05, parameters=p),
    "amsgrad": lambda p: paddle.optimizer.Adam(0.05, parameters=p, amsgrad=True),
    "adamw": lambda p: paddle.optimizer.AdamW(0.05, parameters=p, weight_decay=0.1),
    "named adamw": lambda p: paddle.optimizer.AdamW(0.05, parameters=p, name="mine"),
    "adamw clipped": lambda p: paddle.optimizer.AdamW(
        0.05, parameters=p, weight_decay=0.1, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1)
    ),
    "adamw groups clipped": lambda p: paddle.optimizer.AdamW(
        0.05,
        parameters=[{"params": [each], "learning_rate": 1 / (1 + i)} for i, each in enumerate(p)],
        grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1),
    ),
    "lamb": lambda p: paddle.optimizer.Lamb(0.05, parameters=p),
    "rmsprop": lambda p: paddle.optimizer.RMSProp(0.05, parameters=p, momentum=0.9, centered=True),
    "adagrad": lambda p: paddle.optimizer.Adagrad(0.05, parameters=p),
    "adadelta": lambda p: paddle.optimizer.Adadelta(0.05, parameters=p),
    "adamax": lambda p: paddle.optimizer.Adamax(0.05, parameters=p),
    "nadam": lambda p: paddle.optimizer.NAdam(0.05, parameters=p),
    "radam": lambda p: paddle.optimizer.RAdam(0.05, parameters=p),
    "asgd": lambda p: paddle.optimizer.ASGD(0.05, batch_num=2, parameters=p),
    "rprop": lambda p: paddle.optimizer.Rprop(0.05, parameters=p),
}
"""What makes an optimizer of parameters, by name."""


def updater(*networks, optimizer="SGD", rate=0.05, **settings):
    """Return the updater of one optimizer over the parameters of networks."""
    parameters = [each for network in networks for each in network.parameters()]
    return ParameterUpdater(getattr(paddle.optimizer, optimizer)(rate, parameters=parameters, **settings))


def learning(network, *inside, **settings):
    """Return an updater, the rings inside it, and a gradient machine."""
    return updater(network, **settings), *inside, GradientMachine(network)


def examples(count=16, batch_size=4, **settings):
    """Return the data of some toy examples, without a thread of their own."""
    return DataProvider(toy_examples(count), batch_size, **{"prefetch": 0, **settings})


def toy_batches(count, size=1):
    """Return toy examples as ready batches of numpy arrays."""
    return [collate(toy_examples(count * size)[size * at : size * (at + 1)]) for at in range(count)]


def plain(saved):
    """Return a saved state with the bytes of its arrays, to compare it with others."""
    return {key: value.numpy().tobytes() if hasattr(value, "numpy") else value for key, value in saved.items()}


def check_close(one, other, **within):
    """Assert that the arrays of two networks, or of dicts by path, are close."""
    one, other = (each if isinstance(each, dict) else each.state_dict() for each in (one, other))
    assert one.keys() == other.keys()
    for path, array in one.items():
        np.testing.assert_allclose(np.asarray(array), np.asarray(other[path]), **within, err_msg=path)


def assert_refused(said, *items):
    """Assert that an onion of toy data and items is refused when it is built, with a message and its drawing."""
    with pytest.raises(CompositionError, match=said) as caught:
        Runner(examples(), *items)
    assert "data_provider  DataProvider" in str(caught.value)


class Wrapped(paddle.nn.Layer):
    """A toy network, for subclasses that do something around it."""

    def __init__(self, seed=0):
        super().__init__()
        self.body = toy_network(seed=seed)

    def forward(self, batch):
        return self.body(batch)

    def loss(self, outputs, batch):
        return self.body.loss(outputs, batch)


class Mse:
    """The mean squared error of toy examples."""

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, outputs, batch):
        self.sum += float(((outputs.numpy() - batch["y"]) ** 2).sum())
        self.count += len(batch["y"])

    def result(self):
        return {"mse": self.sum / self.count}
