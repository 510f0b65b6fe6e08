"""Event files for TensorBoard, by tensorboardX (extra ``[tensorboard]``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from onion.monitoring.records import Histogram, Image, Value
from onion.monitoring.writers.writer import Writer, extra, table
from onion.paths import anchored


class TensorBoardWriter(Writer):
    """Write event files that TensorBoard shows: ``tensorboard --logdir FOLDER``.

    Each process writes a file of its own. It begins with a mark that makes TensorBoard hide what earlier files of the
    folder have of the steps that follow, so no point is shown twice; a new run in a used folder hides all of it. The
    settings are a text. A point is in the file when the batch is over.

    Args:
        folder: of the event files; it is created if it is missing.

    Raises:
        OnionError: when the run begins, tensorboardX is not installed.
    """

    name = "tensorboard"
    remedy = "see whether the disk is full and the folder writable"

    def __init__(self, folder: str | Path) -> None:
        self.folder = anchored(folder)

    def open(self, step: int, place: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Begin a file, and hide what others have of later steps."""
        with extra("tensorboard", "TensorBoard"):
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog
            from tensorboardX.proto.summary_pb2 import Summary
            from tensorboardX.summary import histogram_raw, text
        self._event, self._summary, self._histogram = Event, Summary, histogram_raw
        self.folder.mkdir(parents=True, exist_ok=True)
        # tensorboardX names a file by the second; readers take files in the order of their names. Its SummaryWriter
        # would write in a thread, and blocks for good once a full disk has ended that.
        self._file = EventsWriter(str(self.folder / "events"), f".{step:08d}")
        self._file.write_event(Event(step=step + 1, wall_time=time(), session_log=SessionLog(status=SessionLog.START)))
        if settings and not place:
            self._write(step, text("settings", table(settings)))
        self._file.flush()

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Write the values of a step."""
        for name, value in values.items():
            self._write(step, self._summary_of(name, value))
        self._file.flush()

    def _write(self, step: int, summary: Any) -> None:
        self._file.write_event(self._event(step=step, wall_time=time(), summary=summary))

    def _summary_of(self, name: str, value: Value) -> Any:
        if isinstance(value, Histogram):
            limits, totals = (value.minimum, value.maximum), (value.sum, value.sum_of_squares)
            return self._histogram(name, *limits, value.counts.sum(), *totals, value.edges[1:], value.counts)
        kind = self._summary
        if isinstance(value, Image):
            height, width, channels = value.pixels.shape
            size = {"height": height, "width": width, "colorspace": channels}
            return kind(value=[kind.Value(tag=name, image=kind.Image(**size, encoded_image_string=value.png()))])
        return kind(value=[kind.Value(tag=name, simple_value=value)])

    def place(self) -> dict[str, Any]:
        """Say that the settings are written."""
        return {"begun": True}

    def close(self, failed: bool) -> None:
        """Close the file."""
        self._file.close()
