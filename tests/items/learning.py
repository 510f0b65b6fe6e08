"""Small trainings for the tests of items: an updater and a machine over a toy network, and what they come to."""

import paddle

from onion import DataProvider, GradientMachine, ParameterUpdater
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


def learning(network, **settings):
    """Return an updater and a gradient machine."""
    return updater(network, **settings), GradientMachine(network)


def examples(count, batch_size=4, **settings):
    """Return the data of some toy examples, without a thread of their own."""
    return DataProvider(toy_examples(count), batch_size, **{"prefetch": 0, **settings})


def plain(saved):
    """Return a saved state with the bytes of its arrays, to compare it with others."""
    return {key: value.numpy().tobytes() if hasattr(value, "numpy") else value for key, value in saved.items()}


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
