"""Ctrl-C as Python answers it, for as long as a run goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class CtrlC:
    """A KeyboardInterrupt for each SIGINT that comes while something runs; one that comes later hits nothing."""

    def __init__(self) -> None:
        self._running = False

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Answer until this is left."""
        before = signal.signal(signal.SIGINT, self._answer)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            raise KeyboardInterrupt

    def survived(self, run: Callable[[], object]) -> bool:
        """Run something; tell whether it came to its end before an interrupt did."""
        try:
            try:
                self._running = True
                run()
                self._running = False
                return True
            except KeyboardInterrupt:
                self._running = False
        except KeyboardInterrupt:  # another one, at once
            self._running = False
        return False
