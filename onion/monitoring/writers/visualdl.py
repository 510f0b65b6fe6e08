"""Record files for VisualDL (extra ``[visualdl]``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from onion.checkpointing.log_file import LogFile
from onion.monitoring.records import Histogram, Image, Value
from onion.monitoring.writers.writer import Writer, extra, table
from onion.paths import anchored

FILE = "vdlrecords.onion.log"
"""VisualDL shows one file of a folder: of those with ``vdlrecords`` in their names, the last by name."""


class VisualDLWriter(Writer):
    """Write a record file that VisualDL shows: ``visualdl --logdir FOLDER``.

    The file is cut where the checkpoint was written before a resumed run goes on in it, so no point is in it twice. One
    that belongs to no checkpoint is renamed, never overwritten. The settings are a text. A point is in the file when
    the batch is over.

    Args:
        folder: of the file; it is created if it is missing.

    Raises:
        OnionError: when the run begins, visualdl is not installed.
    """

    name = "visualdl"
    remedy = "see whether the disk is full and the folder writable"

    def __init__(self, folder: str | Path) -> None:
        self.folder = anchored(folder)

    def open(self, step: int, place: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Open the file at its end, or at the end of what the checkpoint knows of it."""
        with extra("visualdl", "VisualDL"):
            from visualdl.component.base_component import histogram, meta_data, scalar, text
            from visualdl.proto.record_pb2 import Record
            from visualdl.writer.record_writer import RecordWriter
        self._scalar, self._histogram, self._record = scalar, histogram, Record
        self._file = LogFile(self.folder / FILE, place.get("length"))
        # VisualDL's LogWriter writes in a thread, which drops what a full disk refuses.
        self._records = RecordWriter(self._file)
        if not place:
            self._write(meta_data(step=step, walltime=_now()))
            if settings:
                self._write(text("settings", table(settings), step=step, walltime=_now()))

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Write the values of a step."""
        for name, value in values.items():
            self._write(self._record_of(name.replace("%", "_"), value, step))  # VisualDL refuses %

    def _write(self, record: Any) -> None:
        self._records.write(record.SerializeToString())

    def _record_of(self, name: str, value: Value, step: int) -> Any:
        if isinstance(value, Histogram):
            return self._histogram(name, value.counts, value.edges, step, _now())
        if isinstance(value, Image):  # VisualDL's own function takes dark pictures for floats from 0 to 1
            image = self._record.Image(encoded_image_string=value.png())
            one = self._record.Value(id=step, tag=name, timestamp=_now(), image=image)
            return self._record(values=[one])
        return self._scalar(name, value, step, _now())

    def place(self) -> dict[str, Any]:
        """Return the length of the file, after a sync."""
        return {"length": self._file.synced()}

    def close(self, failed: bool) -> None:
        """Close the file."""
        self._file.close()


def _now() -> int:
    """Return the time in milliseconds, as VisualDL has it."""
    return round(1000 * time())
