"""What every process that reads data for a run has: errors that travel, seeded generators, an end with its parent."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess

import numpy as np

SHUTDOWN_TIMEOUT = 5.0
"""Seconds that threads and workers have in which to end."""


class Failed:
    """An error on its way out of a worker, what was being read, and the traceback as text.

    An error that cannot be sent to another process is replaced by a RuntimeError with its text.
    """

    __slots__ = ("error", "notes", "place", "trace")

    def __init__(self, error: Exception, place: str) -> None:
        self.trace = "".join(traceback.format_exception(error))
        self.place, self.notes = place, list(getattr(error, "__notes__", ()))
        # Its attributes might not be sendable; errors of a thread are treated like those of a worker.
        self.error = type(error)(*error.args) if _travels(error) else RuntimeError(f"{type(error).__name__}: {error}")


def _travels(error: Exception) -> bool:
    """Whether an error can be sent to another process: its class can be found there, its arguments are plain."""
    kind = type(error)
    if isinstance(error, StopIteration):  # which would be taken for the end of the pass
        return False
    known = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    plain = all(isinstance(each, str | int | float | None) for each in error.args)
    try:
        return known and plain and str(kind(*error.args)) == str(error)
    except Exception:
        return False


def seed_generators(seed: int, pass_id: int, batch: int, piece: int = 0) -> None:
    """Seed Python's, numpy's and, where it is imported, Paddle's global generator for a batch, or a piece of it."""
    words = np.random.SeedSequence(seed, spawn_key=(pass_id, batch, piece)).generate_state(8)
    random.seed(words.tobytes())
    np.random.seed(words)
    if "paddle" in sys.modules:
        sys.modules["paddle"].seed(int(words[0]))


def end_with_parent(clean: Callable[[], None] = lambda: None) -> None:
    """Have this process leave as soon as the one that started it has ended; ``clean`` is called before."""

    def wait() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            try:
                clean()
            finally:
                os._exit(1)

    threading.Thread(target=wait, name="onion-parent", daemon=True).start()


def how_it_died(worker: BaseProcess) -> str | None:
    """Return how a process died, for a message; None: it has not, or ended in good order."""
    code = worker.exitcode
    if not code:
        return None
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
