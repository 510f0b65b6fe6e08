"""What tests of several folders share: a network that draws random numbers, its bits, a disk that is in no hurry."""

import paddle

from onion.checkpointing import atomic_files
from onion.testing import toy_network


class Unsynced(atomic_files.Files):
    """The disk, but nobody waits for what was written to be on it; the power does not fail in these tests."""

    def sync(self, handle):
        pass


class Dropped(paddle.nn.Layer):
    """A toy network that draws random numbers."""

    def __init__(self):
        super().__init__()
        self.inner, self.dropout = toy_network(), paddle.nn.Dropout(0.4)

    def forward(self, batch):
        return self.inner({"x": self.dropout(batch["x"])})

    def loss(self, outputs, batch):
        return self.inner.loss(outputs, batch)


def bits(network):
    """The bytes of every parameter and buffer, by path."""
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}
