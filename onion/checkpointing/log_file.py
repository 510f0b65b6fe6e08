"""A file that grows during a run, and that a resumed run cuts where its checkpoint was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from onion.checkpointing.atomic_files import sync, write
from onion.errors import CheckpointError


class LogFile:
    """A log, open for writing at its end.

    A file that belongs to no checkpoint is renamed (``metrics-1.jsonl``), never overwritten.

    Args:
        path: the file; its folder is created if it is missing.
        length: the bytes of it that the checkpoint knows of; what is behind them is cut. None: there is no checkpoint.

    Raises:
        CheckpointError: the disk refuses; all methods raise it.
    """

    def __init__(self, path: Path, length: int | None) -> None:
        self.path = path
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            size = path.stat().st_size if path.exists() else 0
            if length is None and size:
                path.rename(_free_name(path))
            elif length is not None and size > length:
                os.truncate(path, length)
            self._file: IO[bytes] = path.open("ab")

    def write(self, content: bytes) -> None:
        """Write bytes; readers see them at once."""
        with self._writing():
            write(self._file, content)
            self._file.flush()

    def synced(self) -> int:
        """Sync the file to disk; return its length."""
        with self._writing():
            sync(self._file)
            return self._file.tell()

    def close(self) -> int:
        """Sync and close the file; return its length."""
        with self._writing(), self._file:
            return self.synced()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise CheckpointError for an error of the disk."""
        try:
            yield
        except OSError as error:
            raise CheckpointError(f"cannot write the log {self.path}: {error.strerror}.") from error


def _free_name(path: Path) -> Path:
    number = 1
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return other
