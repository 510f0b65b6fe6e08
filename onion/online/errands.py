"""Work of other threads that needs a run to stand still: it is done by the run itself, between two batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, get_ident
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
Errand: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]


class Errands:
    """Takes work in from all threads while a run is under way; the run does it where it stands still.

    ``do`` and ``leave`` are for every thread; all else is for that of the run.
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Errand] = SimpleQueue()
        self._lock = Lock()
        self._thread: int | None = None  # of the run that is under way

    @contextmanager
    def taken_in(self) -> Iterator[None]:
        """Take work in for the run that is under way inside."""
        before, self._thread = self._thread, get_ident()
        try:
            yield
        finally:
            self._take_in_no_more(before)

    def end(self) -> None:
        """Do what waits; from now on who has work does it at once, because the run stands still for good."""
        self._take_in_no_more(None)

    def _take_in_no_more(self, thread: int | None) -> None:
        with self._lock:
            self._thread = thread
        self.run()

    @property
    def is_still(self) -> bool:
        """Whether the run stands still for this thread: none is under way, or this is its own."""
        return self._thread in (None, get_ident())

    def do(self, work: Callable[[], Result]) -> Result:
        """Have work done where the run stands still, and return what came of it; at once where no run is under way.

        Raises:
            BaseException: what the work raises.
        """
        future = self.leave(work)
        return work() if future is None else future.result()

    def leave(self, work: Callable[[], Result]) -> Future[Result] | None:
        """Have work done where the run stands still; None: it stands still now, and this thread may do it."""
        with self._lock:
            if self.is_still:
                return None
            future: Future[Result] = Future()
            self._waiting.put((work, future))
            return future

    def run(self) -> None:
        """Do what waits, now that the run stands still."""
        for _ in range(self._waiting.qsize()):  # no more: who asks again and again would hold the run up for ever
            work, future = self._waiting.get()
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
                if not isinstance(error, Exception):
                    raise  # Ctrl-C, which is meant for the run
            else:
                future.set_result(result)
