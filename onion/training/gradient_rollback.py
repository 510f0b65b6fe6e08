"""What a network holds before it runs, so that nothing has to remain of a run that failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class GradientRollback:
    """One try at a batch with a network: it can be taken back, or kept.

    Gradients that were there before (of other batches of the same update) are set aside, so that those of the try can
    be thrown away alone. Buffers (running means) are copied. Where there is neither, this costs nothing.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        self._buffers = [(buffer, buffer.clone()) for buffer in network.buffers()]
        # A copy, because Paddle clears the very memory that a gradient handed out earlier shares.
        self._before = [(each, each.grad.detach().clone()) for each in network.parameters() if each.grad is not None]
        clear_gradients(parameter for parameter, _ in self._before)

    def take_back(self) -> None:
        """Throw away the gradients made since, and put the buffers back."""
        clear_gradients(self._network.parameters())
        for buffer, before in self._buffers:
            buffer.set_value(before)

    def keep(self) -> None:
        """Add the gradients that were set aside to those made since."""
        for parameter, before in self._before:
            parameter.grad = before if parameter.grad is None else parameter.grad + before
        self._before = []


def clear_gradients(parameters: Iterable[Any]) -> None:
    """Throw gradients away, so that there are none; zeros would still move a parameter, by momentum."""
    for parameter in parameters:
        parameter.clear_gradient(False)  # by position: Paddle overlooks set_to_zero=False and leaves zeros
