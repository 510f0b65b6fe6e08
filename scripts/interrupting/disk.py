"""The file layer at whose operations Ctrl-C comes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random
from threading import Lock, current_thread, main_thread
from typing import IO

from onion.checkpointing.atomic_files import Files

SLOWEST = 0.01
"""Seconds that an operation of a thread may take, so that it is still writing when the next run begins."""


class InterruptingFiles(Files):
    """The system's files, a little slower in threads, with a SIGINT to the process before some of the operations.

    Args:
        at: the numbers of these operations, from 1, over all threads.
        chance: draws how slow each is.
    """

    def __init__(self, at: Iterable[int], chance: Random) -> None:
        self._at, self._chance, self._lock = frozenset(at), chance, Lock()
        self.count = 0

    def write(self, file: IO[bytes], content: bytes) -> None:
        """Write the two halves apart."""
        self._step()
        super().write(file, content[: len(content) // 2])
        self._step()
        super().write(file, content[len(content) // 2 :])

    def sync(self, handle: int) -> None:
        """Pass it on: what was written is there for every process, and no power fails here."""
        self._step()

    def rename(self, source: Path, target: Path) -> None:
        """Rename."""
        self._step()
        super().rename(source, target)

    def remove(self, folder: Path) -> None:
        """Remove half of the files, then the rest."""
        self._step()
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files[: len(files) // 2]:
            path.unlink()
        self._step()
        super().remove(folder)

    def _step(self) -> None:
        with self._lock:
            self.count += 1
            due, pause = self.count in self._at, self._chance.random() * SLOWEST
        in_a_thread = current_thread() is not main_thread()
        if due:
            os.kill(os.getpid(), signal.SIGINT)  # the main thread answers, wherever it is
        if in_a_thread:
            time.sleep(pause)
