"""Small trainings for the tests of items: an updater and a machine over a toy network, and what they come to."""

import paddle

from onion import DataProvider, GradientMachine, ParameterUpdater
from onion.testing import toy_examples


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


class Mse:
    """The mean squared error of toy examples."""

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, outputs, batch):
        self.sum += float(((outputs.numpy() - batch["y"]) ** 2).sum())
        self.count += len(batch["y"])

    def result(self):
        return {"mse": self.sum / self.count}
