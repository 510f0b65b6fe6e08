"""The file of samples that could not be used."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onion.checkpointing.atomic_files import sync, write
from onion.errors import CheckpointError
from onion.online.gathering import Rejected

log = logging.getLogger("onion")

LARGEST, LONGEST = 64 * 2**20, 10_000
"""How large the file gets, in bytes; how much of a sample is told, in characters of its JSON."""


class Rejects:
    """Rows ``{"position", "reason", "sample"}``, one JSON object a line; after 64 MiB they are counted only.

    Attributes:
        path: The file, made with the first row. None: they are only counted.
        count: How many samples were rejected.
        offset: The length of the file.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self.count = self.offset = 0

    def open(self, path: Path) -> None:
        """Cut off the rows that came after the checkpoint: their samples come again.

        Raises:
            CheckpointError: The file cannot be written.
        """
        self.path = path
        try:
            if path.exists() and path.stat().st_size > self.offset:
                os.truncate(path, self.offset)
        except OSError as error:
            raise self._refused(error) from error

    def add(self, rejected: Sequence[Rejected]) -> None:
        """Write a row for each.

        Raises:
            CheckpointError: The file cannot be written.
        """
        if not rejected:
            return
        if self.count == 0:
            log.warning("samples are rejected, the first because of %s; see %s", rejected[0].reason, self.path)
        self.count += len(rejected)
        if self.path is None or self.offset >= LARGEST:
            return
        content = b"".join(_row(each) for each in rejected)
        try:
            with self.path.open("ab") as file:
                write(file, content)
            self.offset += len(content)
        except OSError as error:
            raise self._refused(error) from error

    def settle(self) -> None:
        """Bring the file to the disk.

        Raises:
            CheckpointError: It cannot be written.
        """
        try:
            if self.path is not None and self.offset and self.path.exists():
                with self.path.open("ab") as file:
                    sync(file)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> CheckpointError:
        return CheckpointError(f"cannot write the rejected samples to {self.path}: {error.strerror}.")


def _row(rejected: Rejected) -> bytes:
    sample: Any = rejected.sample.data
    text = json.dumps(sample, ensure_ascii=False, default=repr)
    if len(text) > LONGEST:
        sample = text[:LONGEST]
    row = {"position": rejected.sample.position, "reason": rejected.reason, "sample": sample}
    return json.dumps(row, ensure_ascii=False, default=repr).encode(errors="replace") + b"\n"
