"""Curves for TensorBoard (extra ``[tensorboard]``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onion.errors import OnionError
from onion.item import Way
from onion.items.periodic import Every, Periodic
from onion.items.readings import cost_of, readings
from onion.paths import anchored
from onion.places import OUTSIDE_REPORTS, UNREPEATED
from onion.state import State


class TensorBoard(Periodic):
    """Write cost, readings and metrics as scalars that TensorBoard shows.

    Args:
        folder: the folder of the event files.
        every: steps between two points, a ``timedelta``, or ``"pass"``. Default 100.

    Raises:
        OnionError: tensorboardX is not installed.
    """

    watches = True
    place_rules = (UNREPEATED, OUTSIDE_REPORTS)
    unsaved = ("_writer",)

    def __init__(self, folder: str | Path, every: Every = 100) -> None:
        super().__init__(every)
        self.folder = anchored(folder)
        self._writer: Any = None

    def initialize(self, state: State) -> Way:
        """Hold the event file open around the run."""
        try:
            from tensorboardX import SummaryWriter
        except ModuleNotFoundError:
            raise OnionError("TensorBoard needs tensorboardX: pip install 'onion-paddle[tensorboard]'.") from None
        self._writer = SummaryWriter(str(self.folder))
        try:
            yield
        finally:
            self._writer.close()

    def act(self, state: State) -> None:
        """Write a point on every curve."""
        for name, value in {**cost_of(state), **readings(state), **state.metrics}.items():
            self._writer.add_scalar(name, value, state.step)
