"""A network with something around it."""

from __future__ import annotations

from typing import Any

from paddle import nn


class WrappedNetwork:
    """A network of which a subclass changes a part; everything else is the network's.

    Parameters, their paths and the mode are those of the network, so checkpoints are too.

    Args:
        network: a layer that is called with a batch.
    """

    def __init__(self, network: nn.Layer) -> None:
        self.network = network

    def __call__(self, batch: Any) -> Any:
        """Return the outputs of the network."""
        return self.network(batch)

    def __getattr__(self, name: str) -> Any:
        if name == "network":  # not set yet, while it is copied
            raise AttributeError(name)
        return getattr(self.network, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the network, such as its mode."""
        if name == "network":
            object.__setattr__(self, name, value)
        else:
            setattr(self.network, name, value)
