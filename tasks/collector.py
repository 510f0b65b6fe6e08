"""The item that collects a network's outputs in the order of the file."""

from __future__ import annotations

import numpy as np

from onion import RunnerItem, State, Way


class Collector(RunnerItem):
    """Put the outputs of every batch in their rows' places.

    Args:
        rows: how many rows there are.

    Attributes:
        outputs: after a pass, one array a row, as the network gave it.
    """

    def __init__(self, rows: int) -> None:
        self.outputs: list[np.ndarray] = [np.empty(0)] * rows

    def on_batch(self, state: State) -> Way:
        """Collect the batch."""
        yield
        for row, output in zip(state.batch["rows"], np.asarray(state.outputs), strict=True):
            self.outputs[row] = output
