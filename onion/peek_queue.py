"""A queue of which the first element can be looked at before it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

Element = TypeVar("Element")


class PeekQueue(Generic[Element]):
    """Passes elements from any thread to one that takes them, in order.

    ``put`` and ``len`` are for every thread, the rest for the one that takes.
    """

    def __init__(self) -> None:
        self._later: SimpleQueue[Element] = SimpleQueue()
        self._first: Element | None = None

    def put(self, element: Element) -> None:
        """Add an element, which is not None, at the end."""
        self._later.put(element)

    def __len__(self) -> int:
        return self._later.qsize() + (self._first is not None)

    def peek(self, timeout: float = 0.0) -> Element | None:
        """Return the first element, which stays the first until ``take``; wait for it up to this many seconds.

        Returns:
            None: there is none.
        """
        if self._first is None:
            try:
                self._first = self._later.get(timeout=timeout)
            except Empty:
                return None
        return self._first

    def take(self) -> Element | None:
        """Remove the first element and return it; None: there is none."""
        element, self._first = self.peek(), None
        return element

    def drain(self) -> Iterator[Element]:
        """Take all elements that are there now."""
        for _ in range(len(self)):
            if (element := self.take()) is not None:
                yield element
