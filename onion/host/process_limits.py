"""Limits of the process that are raised while they are needed and restored afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class Raised:
    """A limit of the process, by its getter and setter. Several threads may raise it: the highest value counts."""

    def __init__(self, get: Callable[[], int], put: Callable[[int], object]) -> None:
        self._get, self._put = get, put
        self._lock = threading.Lock()
        self._wishes: list[int] = []
        self._before = self._ours = 0

    @contextmanager
    def to(self, wish: int) -> Iterator[None]:
        """Raise the limit to at least ``wish``; restore it afterwards, unless other code has set it meanwhile."""
        with self._lock:
            if not self._wishes or self._get() != self._ours:
                self._before = self._get()
            self._wishes.append(wish)
            self._set()
        try:
            yield
        finally:
            with self._lock:
                self._wishes.remove(wish)
                if self._get() == self._ours:
                    self._set()

    def _set(self) -> None:
        self._ours = max([self._before, *self._wishes])
        if self._get() != self._ours:
            self._put(self._ours)


CALLS = Raised(sys.getrecursionlimit, sys.setrecursionlimit)
"""Python's recursion limit, by default 1000."""

CALLS_PER_RING, CALLS_INSIDE = 2, 1000
"""Nested calls that a ring takes (a nested runner's ring takes two), and those left to the innermost ring."""


def room_for_calls(rings: int) -> AbstractContextManager[None]:
    """Raise the recursion limit for nested rings, with as many calls for the innermost one as usual."""
    return CALLS.to(depth() + CALLS_PER_RING * rings + CALLS_INSIDE)


def depth() -> int:
    """Return the depth of the call stack of the caller."""
    count, frame = 0, sys._getframe(1)
    while frame.f_back is not None:
        count, frame = count + 1, frame.f_back
    return count + 1
