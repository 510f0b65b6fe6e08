"""Limits of the process that are raised for as long as somebody needs it, and are then what they were."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


class Raised:
    """A limit of the whole process. Several threads and runs may raise it at once: the highest wish counts.

    Args:
        get: returns the limit.
        put: sets it.
    """

    def __init__(self, get: Callable[[], int], put: Callable[[int], object]) -> None:
        self._get, self._put = get, put
        self._lock = threading.Lock()
        self._wishes: list[int] = []
        self._before = self._ours = 0

    @contextmanager
    def to(self, wish: int) -> Iterator[None]:
        """Let the limit be at least so much; afterwards it is as before, unless somebody else has set it meanwhile."""
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
"""Calls within calls that Python allows, a thousand unless it is told."""

CALLS_A_RING, ROOM = 2, 1000
"""Each ring's call stands within the one around it, a nested runner's within two; so many are left to the innermost."""


def room_for_calls(rings: int) -> AbstractContextManager[None]:
    """Let there be room for the calls of rings within each other, and for as many in the innermost as usual."""
    return CALLS.to(depth() + CALLS_A_RING * rings + ROOM)


def depth() -> int:
    """Return how many calls stand within each other where this is called."""
    count, frame = 0, sys._getframe(1)
    while frame.f_back is not None:
        count, frame = count + 1, frame.f_back
    return count + 1
