"""`Prefetcher`: the next items are made in a background thread while the current one is in use.

The thread and the iterator talk through two queues. Whoever takes an item puts a permit into the one, and the thread
needs a permit for each item that it makes and puts into the other: so the thread is never more than `depth` items
ahead, and sleeps when it is. To close is to set a flag and to add a permit, which wakes the thread.

Both are `queue.SimpleQueue`: its ``put`` may run inside a finaliser even when the same thread is in the middle of
another ``put`` or ``get``, which is not true of locks and conditions. An iterator that was not closed can therefore
stop its thread when it is garbage-collected.
"""

from __future__ import annotations

import logging
import math
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

from onion.errors import DataError

T = TypeVar("T")

ABANDON_TIMEOUT = 0.2
"""Seconds that `close` waits for a source whose item was already given up."""

POLL_INTERVAL = 0.5
"""Seconds after which the wait for an item is restarted: a signal that arrives exactly when the thread falls asleep
does not wake it, and Python would not handle it before the item is there."""

_END = object()
_LOG = logging.getLogger(__name__)


class _Failure(NamedTuple):
    """An error that travels from the thread to the consumer."""

    error: BaseException


class _Line(Generic[T]):
    """What thread and iterator share. It knows neither of them, so that the iterator can be garbage-collected."""

    __slots__ = ("closed", "items", "permits")

    def __init__(self, depth: int) -> None:
        self.permits: SimpleQueue[None] = SimpleQueue()
        self.items: SimpleQueue[Any] = SimpleQueue()
        self.closed = False
        for _ in range(depth):
            self.permits.put(None)

    def close(self) -> None:
        self.closed = True
        self.permits.put(None)


def _work(line: _Line[T], source: Iterable[T] | Callable[[], Iterable[T]]) -> None:
    """Run in the thread: an item a permit, then the end or the error."""
    try:
        items = iter(source() if callable(source) else source)
        while True:
            line.permits.get()
            if line.closed:
                break
            item = next(items, _END)
            if item is _END:
                break
            line.items.put(item)
            del item  # while the thread sleeps, a batch belongs to its consumer alone
        line.items.put(_END)
    except BaseException as error:  # also a KeyboardInterrupt or SystemExit out of the source belongs to the consumer
        line.items.put(_Failure(error))


class Prefetcher(Iterator[T]):
    """An iterator over the same items in the same order, made up to `depth` items ahead in one daemon thread.

    An error in the source is raised where its item would have come, with the traceback of the source. After the end, an
    error or `close` there are no more items, and no thread.

    Args:
        source: An iterable, or a function that makes one. It is called and iterated in the thread only.
        depth: How many items to make ahead, from 1.
        close_timeout: How long `close` waits for a source that is in the middle of an item, in seconds. Default 10;
            less once a wait for that item was given up.
        timeout: How long to wait for an item at most, in seconds. Default: as long as it takes.
        wake: Called by `close`, from whatever thread that is in: it has the source end its current item at once.
            Default: the item is waited for.

    Raises:
        DataError: The source has given nothing for `timeout` seconds.

    Example::

        with Prefetcher(batches, depth=2) as ahead:
            for batch in ahead:
                ...
    """

    def __init__(
        self,
        source: Iterable[T] | Callable[[], Iterable[T]],
        depth: int = 2,
        close_timeout: float = 10.0,
        timeout: float | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        if depth < 1:
            raise ValueError(f"depth, the number of items prepared ahead, must be >= 1, got {depth}")
        self._line: _Line[T] = _Line(depth)
        self._close_timeout, self._timeout, self._wake = close_timeout, timeout, wake
        self._ended = False
        self._thread = threading.Thread(target=_work, args=(self._line, source), name="onion-prefetch", daemon=True)
        self._thread.start()
        weakref.finalize(self, self._line.close)

    def __next__(self) -> T:
        if self._ended:
            raise StopIteration
        item = self._awaited()
        if item is _END:
            self.close()
            raise StopIteration
        if isinstance(item, _Failure):
            self.close()
            try:
                raise item.error
            finally:
                del item  # else the error would hold this frame by its traceback, and the frame the error
        self._line.permits.put(None)
        result: T = item
        return result

    def _awaited(self) -> Any:
        """Whatever comes next from the thread. It may take a while, and a signal's handler may raise an error here."""
        end = math.inf if self._timeout is None else monotonic() + self._timeout
        left = math.inf
        try:
            while left > 0:
                left = max(0.0, end - monotonic())
                with suppress(Empty):  # looked for once more when the time is over: on a busy machine it may be there
                    return self._line.items.get(timeout=min(POLL_INTERVAL, left))
        except BaseException:
            self.hurry()
            raise
        self.hurry()
        raise DataError(
            f"the data source has returned nothing for {self._timeout:g} s; check what it waits for, or raise timeout="
        )

    def hurry(self) -> None:
        """Have `close` wait for `ABANDON_TIMEOUT` seconds at most."""
        self._close_timeout = min(self._close_timeout, ABANDON_TIMEOUT)

    def close(self) -> None:
        """End the iterator and its thread; harmless when called again.

        The thread is gone when this returns, with one exception: a source that does not come back from its own ``next``
        cannot be interrupted. It is waited for `close_timeout` seconds and then left behind with a warning in the log;
        its thread ends as soon as it does come back, and does not keep the process alive.
        """
        self._ended = True
        self._line.close()
        if self._wake is not None:
            self._wake()
        self._thread.join(self._close_timeout)
        if self._thread.is_alive():
            _LOG.warning(
                "the data source has been busy with one item for %g s; its thread was abandoned", self._close_timeout
            )

    def __enter__(self) -> Prefetcher[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
