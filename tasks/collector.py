"""Items that decode a network's outputs and collect them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onion import HookIterator, RunnerItem, State

if TYPE_CHECKING:
    from paddle import nn


class Decoder(RunnerItem):
    """Replace ``state.outputs`` with the network's ``decode(outputs, batch)``: one entry per example.

    Args:
        network: has a method ``decode``.
    """

    def __init__(self, network: nn.Layer) -> None:
        self.network = network

    def on_batch(self, state: State) -> HookIterator:
        """Decode on the way out."""
        yield
        state.outputs = self.network.decode(state.outputs, state.batch)


class Collector(RunnerItem):
    """Collect the decoded outputs in the order of the examples.

    Args:
        examples: the number of examples.

    Attributes:
        found: after a pass, one entry per example.
    """

    def __init__(self, examples: int) -> None:
        self.found: list[Any] = [None] * examples

    def on_batch(self, state: State) -> HookIterator:
        """Collect the batch."""
        yield
        for place, each in zip(state.batch["places"], state.outputs, strict=True):
            self.found[place] = each
