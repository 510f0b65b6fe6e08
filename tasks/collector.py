"""The items between a network and what is done with its outputs: decode them, collect them."""

from __future__ import annotations

from typing import Any

from paddle import nn

from onion import HookIterator, RunnerItem, State


class Decoder(RunnerItem):
    """Replace ``state.outputs`` by what the network's ``decode(outputs, batch)`` makes of them: one entry an example.

    Args:
        network: has ``decode``.
    """

    def __init__(self, network: nn.Layer) -> None:
        self.network = network

    def on_batch(self, state: State) -> HookIterator:
        """Decode on the way out."""
        yield
        state.outputs = self.network.decode(state.outputs, state.batch)


class Collector(RunnerItem):
    """Put what was decoded of every batch in its examples' places.

    Args:
        examples: how many there are.

    Attributes:
        found: after a pass, one entry an example.
    """

    def __init__(self, examples: int) -> None:
        self.found: list[Any] = [None] * examples

    def on_batch(self, state: State) -> HookIterator:
        """Collect the batch."""
        yield
        for place, each in zip(state.batch["places"], state.outputs, strict=True):
            self.found[place] = each
