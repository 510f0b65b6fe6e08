"""Curves for TensorBoard (extra ``[tensorboard]``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onion.engine.item import HookIterator
from onion.engine.periodic import Interval, Periodic
from onion.engine.placement import OUTSIDE_REPORTS, UNREPEATED
from onion.engine.state import State
from onion.errors import OnionError
from onion.monitoring.log_values import log_values, loss_of
from onion.paths import anchored


class TensorBoard(Periodic):
    """Write loss, log values and metrics as scalars that TensorBoard shows.

    Args:
        folder: the folder of the event files.
        every: steps between two points, a ``timedelta``, or ``"pass"``. Default 100.

    Raises:
        OnionError: tensorboardX is not installed.
    """

    passive = outermost_only = True
    place_rules = (UNREPEATED, OUTSIDE_REPORTS)
    transient = ("_writer",)

    def __init__(self, folder: str | Path, every: Interval = 100) -> None:
        super().__init__(every)
        self.folder = anchored(folder)
        self._writer: Any = None

    def initialize(self, state: State) -> HookIterator:
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
        for name, value in {**loss_of(state), **log_values(state), **state.metrics}.items():
            self._writer.add_scalar(name, value, state.step)
