"""Curves, histograms and pictures for TensorBoard, VisualDL, Weights & Biases or MLflow."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from onion.engine.item import HookIterator
from onion.engine.periodic import Interval
from onion.engine.state import State
from onion.errors import CompositionError, OnionError
from onion.messages import first_line
from onion.monitoring.figure_writer import FigureWriter
from onion.monitoring.records import Histogram, Image, Value
from onion.monitoring.writers.writer import Writer

log = logging.getLogger("onion")


class Tracker(FigureWriter):
    """Write loss, log values and metrics, and what is recorded, where a tool shows them.

        Tracker(TensorBoardWriter("curves"), every=50)

    Put it outside the items whose metrics it writes and inside the Saver, which lets a resumed run go on where it was.
    A client that fails when the run begins is an error. One that fails later, or cannot be closed, is a warning, and
    the run goes on without it. An inner run that shares the item, such as a test, writes nothing.

    Args:
        writer: TensorBoardWriter, VisualDLWriter, WandbWriter, MLflowWriter, or one of your own.
        every: steps between two points, a ``timedelta``, or ``"pass"``. Metrics, and what is recorded, are written at
            the step they are of. Default 100.
        settings: of the run, JSON values by name, for tools that keep them. Default: none.
        name: of the item. Default: that of the writer, so a second Tracker of the same tool needs one.

    Raises:
        CompositionError: ``writer`` is no Writer.
        OnionError: when the run begins, the client is not installed, or fails.
    """

    transient = ("writer", "_open", "_place", "place")  # ids, and lengths of files

    def __init__(
        self, writer: Writer, every: Interval = 100, settings: Mapping[str, Any] | None = None, name: str | None = None
    ) -> None:
        super().__init__(every)
        if not isinstance(writer, Writer):
            raise CompositionError(
                f"Tracker takes a writer, not a {type(writer).__name__}: Tracker(TensorBoardWriter('curves'))."
            )
        self.writer, self.settings = writer, dict(settings or {})
        self.name, self.kinds = name or writer.name, writer.kinds
        self._open = False
        self.reset()

    def reset(self) -> None:
        """Begin something new."""
        super().reset()
        self._place: dict[str, Any] = {}

    def initialize(self, state: State) -> HookIterator:
        """Hold the client open around the run."""
        self.listen(state)
        try:
            self.writer.open(state.step, self._place, self.settings)
        except OnionError:
            raise
        except Exception as error:
            raise OnionError(
                f"{self.name} cannot begin: {first_line(error)}; {self.writer.remedy}; or leave it out of the loggers."
            ) from error
        self._open = failed = True
        try:
            yield
            failed = False
        finally:
            self._close(failed)

    def write(self, state: State, values: Mapping[str, Value]) -> None:
        """Write a point on every curve."""
        if self._open:
            with self._failing(f"nothing is written there from step {state.step} on"):
                self.writer.write(state.step, {name: _plain(value) for name, value in values.items()})

    def state_dict(self) -> dict[str, Any]:
        """Return where a resumed run goes on."""
        self._keep_place()
        return {**super().state_dict(), "place": json.dumps(self._place)}

    def _keep_place(self) -> None:
        if self._open:
            with self._failing("nothing is written there from here on"):
                self._place = self.writer.place()

    def _close(self, failed: bool) -> None:
        self._keep_place()
        if self._open:
            self._open = False
            with self._failing("its last points may be missing there"):
                self.writer.close(failed)

    @contextmanager
    def _failing(self, lost: str) -> Iterator[None]:
        """Let the run go on without a client that fails."""
        try:
            yield
        except Exception as error:
            log.warning(
                "%s failed: %s; %s, and the run goes on; %s", self.name, first_line(error), lost, self.writer.remedy
            )
            if self._open:
                self._open = False
                with suppress(Exception):
                    self.writer.close(failed=True)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where the run of the checkpoint was."""
        super().load_state_dict(saved)
        self._place = json.loads(saved["place"])


def _plain(value: Value) -> Value:
    """Return a number, which may be one of numpy's, as Python's."""
    return value if isinstance(value, Histogram | Image) else float(value)
