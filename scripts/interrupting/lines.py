"""The lines of the code that saves, as places at which Ctrl-C comes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

from onion.checkpointing import atomic_files, background, checkpoint, lock, run_state, writer
from onion.items import saver

SAVING: tuple[ModuleType, ...] = (background, checkpoint, atomic_files, lock, writer, run_state, saver)
FILES = frozenset(module.__file__ for module in SAVING)


class Lines:
    """Counts the lines of these modules that the main thread comes by, and interrupts it before one of them.

    Args:
        at: its number, from 1; 0: none.
    """

    def __init__(self, at: int) -> None:
        self._at = at
        self.count = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Do so until this is left."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename in FILES else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "line":
            self.count += 1
            if self.count == self._at:
                raise KeyboardInterrupt
        return self._line
