"""`InterruptibleWait`: a wait for the next batch that a signal may end.

A signal's handler runs in the main thread between any two instructions. So it must not end a wait by an error that
could also be raised just before or after the wait, when a batch was counted but not returned. This is why it cannot:

* The handler raises `Interrupted` only while ``_open`` is true, and makes it false as it does: once a wait at most.
* ``_open`` is true from the first lines of ``with wait:`` to its last. However that is left, it is false afterwards: by
  ``__exit__``, or by the handler.
* It is true in the main thread only. If another thread waits, for example because an item wraps ``state.batches`` in a
  `Prefetcher`, the error would interrupt the main thread in the middle of a batch. Such a wait ends with its batch.
* Batches are counted after the wait. So a batch that was there already when `Interrupted` was raised was not counted,
  and the resumed run draws it again.
* A signal that comes earlier is remembered in ``asked``, which is looked at after ``_open`` has become true. Between
  the two there is no moment at which it would be missed.
"""

from __future__ import annotations

from threading import get_ident, main_thread
from types import TracebackType


class Interrupted(BaseException):
    """A signal ended this wait. Whoever has the `InterruptibleWait` catches it; sources need not know it."""

    def __init__(self, wait: InterruptibleWait) -> None:
        self.wait = wait


class InterruptibleWait:
    """A wait of the main thread that `wake` ends, as often as ``with wait:`` is entered. One elsewhere is not ended.

    Attributes:
        may_end: Whether the wait to come may be ended; to be set before it. Default False.
        asked: Whether `wake` was called.
    """

    __slots__ = ("_main", "_open", "asked", "may_end")

    def __init__(self) -> None:
        self._main = main_thread().ident
        self.may_end = self.asked = self._open = False

    def __enter__(self) -> None:
        self._open = self.may_end and get_ident() == self._main
        if self.asked:
            self._end()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False

    def wake(self) -> None:
        """End the current or next wait by `Interrupted`, if it may be ended; for a handler in the main thread."""
        self.asked = True
        self._end()

    def _end(self) -> None:
        if self._open:
            self._open = False
            raise Interrupted(self)
