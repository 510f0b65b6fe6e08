"""What tests of several folders share: toy training, what a run shows, its bits, and a disk that is in no hurry."""

import numpy as np
import paddle
import pytest

from onion import CompositionError, DataProvider, GradientMachine, Observer, ParameterUpdater, Runner, RunnerItem
from onion.checkpointing import atomic_files
from onion.testing import PlannedError, toy_examples, toy_network

# -- training ----------------------------------------------------------------------------------------------------------


def toy_data(count=16, batch_size=4, **settings):
    """Toy examples in batches, without a background thread."""
    return DataProvider(toy_examples(count), batch_size, **{"prefetch": 0, **settings})


def toy_batches(count, size=1):
    """Ready batches of the toy examples, as numpy arrays."""
    examples = toy_examples(count * size)
    parts = [examples[start : start + size] for start in range(0, len(examples), size)]
    return [{name: np.stack([each[name] for each in part]) for name in ("x", "y")} for part in parts]


def sgd(network, rate=0.05):
    return ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters()))


def adam(network, rate=0.05):
    return ParameterUpdater(paddle.optimizer.Adam(rate, parameters=network.parameters()))


def learning(network, *inside, updater=sgd):
    """What trains a network: an updater, the rings inside it, and the machine."""
    return [updater(network), *inside, GradientMachine(network)]


class Dropped(paddle.nn.Layer):
    """A toy network that draws random numbers."""

    def __init__(self):
        super().__init__()
        self.inner, self.dropout = toy_network(), paddle.nn.Dropout(0.4)

    def forward(self, batch):
        return self.inner({"x": self.dropout(batch["x"])})

    def loss(self, outputs, batch):
        return self.inner.loss(outputs, batch)


# -- what a run shows --------------------------------------------------------------------------------------------------


class Watch(Observer):
    """Keep in ``seen`` what a function of the state returns, by default on the way into each batch."""

    def __init__(self, look, at="on_batch_begin"):
        self.seen = []
        super().__init__(**{at: lambda state: self.seen.append(look(state))})


class Retry(RunnerItem):
    """Run the inside of a batch again after a planned error."""

    def on_batch(self, state):
        try:
            yield
            return
        except PlannedError:
            pass
        yield


def bits(network):
    """The bytes of every parameter and buffer, by path."""
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}


def item_bits(*items):
    """The saved states of items, tensors as bytes, by the items' names."""
    return {
        item.name: {
            key: value.numpy().tobytes() if isinstance(value, paddle.Tensor) else value
            for key, value in item.state_dict().items()
        }
        for item in items
    }


def check_close(one, other, **within):
    """Assert that the parameters and buffers of two networks, or arrays by path, are close."""
    one, other = (_arrays(each) for each in (one, other))
    assert one.keys() == other.keys()
    for path, value in one.items():
        np.testing.assert_allclose(value, other[path], **within, err_msg=path)


def _arrays(network):
    return network if isinstance(network, dict) else {k: v.numpy() for k, v in network.state_dict().items()}


def assert_refused(said, *items):
    """Assert that an onion of toy data and items is refused when it is built, with a message and its drawing."""
    with pytest.raises(CompositionError, match=said) as caught:
        Runner(toy_data(), *items)
    assert "data_provider  DataProvider" in str(caught.value)


class Unsynced(atomic_files.Files):
    """The disk, but nobody waits for what was written to be on it; the power does not fail in these tests."""

    def sync(self, handle):
        pass
