"""One piece of work at a time beside the loop."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


class Background:
    """Does one piece of work at a time in a thread; what it raises is raised where its end is asked for.

    The thread does not keep the process alive. Where the wait for it is interrupted (Ctrl-C), it goes on, and can be
    waited for again.
    """

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._error: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin the next piece once the one before has ended.

        Raises:
            BaseException: what that one raised; the next is not begun.
        """
        self.wait()
        self._thread = Thread(target=self._do, args=(work,), name="onion-background", daemon=True)
        self._thread.start()

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error

    def look(self) -> None:
        """Raise what the work raised, if it has ended; wait for nothing."""
        if self._thread is not None and not self._thread.is_alive():
            self.wait()

    def wait(self) -> None:
        """Wait for the end of the work; raise what it raised."""
        if self._thread is not None and self._thread.is_alive():  # it is not where its start was interrupted
            self._thread.join()
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
