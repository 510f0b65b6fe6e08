"""`Workers`: a function computed for many items by worker processes; the results come in the order of the items.

A worker has a pipe and one item at a time. Whoever is idle gets the next item, and a result that comes early waits for
its turn; so neither a slow item nor the number of workers changes the order. No more than `AHEAD` items a worker are
begun before the result that is due.

The workers come from Python's fork server, a process that has computed nothing yet. To fork this one would copy the
locks of threads that are not there in the child: of the prefetching, of the Saver, of Paddle's math library, and the
child might wait for them for ever. Therefore function and items are pickled, as a `paddle.io.DataLoader`, which forks,
does not need; arrays travel through the pipe.

Signals are ignored in a worker: the run decides what they mean, finishes its batch, and ends its workers. A worker
leaves by itself when the process that started it is gone, however that ended.
"""

from __future__ import annotations

import atexit
import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, TypeVar

from onion.data.prefetch import POLL_INTERVAL
from onion.data.source import say_where
from onion.data.worker_process import SHUTDOWN_TIMEOUT, Failed, end_with_parent, how_it_died
from onion.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Items a worker that may be begun, or wait for their turn."""

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IMPORTED = ("onion.data.workers",)
"""What the fork server imports once for all workers; and Paddle, which takes a second, where it is imported here."""


class Workers(Generic[Item, Result]):
    """Worker processes that compute one function; they start with the first item.

    Args:
        function: Computes an item. It is pickled, so it has to be found in a module: no lambda, no local function.
        number: How many processes, from 1.

    Raises:
        DataError: The function cannot be pickled. While results are drawn: an item or a result cannot be, or a worker
            died.

    What the function raises comes out as it is, with the traceback of the worker as a note. An error whose class or
    arguments cannot be sent by a worker comes as a RuntimeError.
    """

    def __init__(self, function: Callable[[Item], Result], number: int) -> None:
        self._function = bytes(_pickled(function, "what a worker computes"))
        self._number = number
        self._idle: list[_Worker] = []
        self._busy: dict[Any, _Worker] = {}
        self._closed = False
        self._lock = threading.Lock()

    def map(self, items: Iterable[Item]) -> Generator[Result, None, None]:
        """Give the function of every item, in their order; to be called once. With it the workers begin and end."""
        atexit.register(self.close)  # else multiprocessing would wait for a worker that is busy
        left, results = _contents(items), dict[int, Any]()
        given, due, more = 0, 0, True
        try:
            while True:
                while more and given - due < AHEAD * self._number and (worker := self._free()):
                    content = next(left, None)
                    more = not (content is None or isinstance(content, _Raised))
                    if isinstance(content, _Raised):
                        results[given] = content
                    elif content is not None:
                        self._give(worker, given, content)
                    given += content is not None
                if due in results:
                    yield _opened(results.pop(due))
                    due += 1
                elif due == given or not self._receive(results):
                    return
        finally:
            self.close()

    def _free(self) -> _Worker | None:
        """An idle worker, or a new one as long as there are fewer than wanted."""
        with self._lock:
            if self._closed:
                return None
            if not self._idle and len(self._busy) < self._number:
                self._idle.append(_Worker(self._function))
            return self._idle[-1] if self._idle else None

    def _give(self, worker: _Worker, number: int, content: memoryview) -> None:
        with self._lock:
            if not self._closed:
                self._idle.remove(worker)
                self._busy[worker.pipe] = worker
                worker.begin(number, content)

    def _receive(self, results: dict[int, Any]) -> bool:
        """Wait for a moment until a worker is done; return False if they were ended meanwhile."""
        for pipe in wait(list(self._busy), POLL_INTERVAL):
            worker = self._busy[pipe]
            try:
                results[worker.item] = worker.result()
                alive = True
            except (EOFError, OSError):  # it died, or was ended
                alive = self._closed
            if not alive:
                results[worker.item] = _Raised(worker.death())
            with self._lock:
                if not self._closed:
                    del self._busy[pipe]
                    self._idle += [worker] * alive
        return not self._closed

    def close(self) -> None:
        """End the workers, also in the middle of an item. Harmless when called again, or by another thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            atexit.unregister(self.close)
            for worker in self._busy.values():
                worker.kill()
            for worker in self._idle:
                worker.pipe.close()  # which it takes for the end
            for worker in (*self._busy.values(), *self._idle):
                worker.join()


class _Worker:
    """A process with its pipe, and the item that it is at."""

    def __init__(self, function: bytes) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*IMPORTED, *(["paddle"] if "paddle" in sys.modules else [])])
        self.pipe, theirs = context.Pipe()
        self.item = 0
        self._answered = False
        self._process = context.Process(target=_work, args=(theirs, function), name="onion-worker", daemon=True)
        with theirs, _signals_held():
            self._process.start()

    def begin(self, item: int, content: memoryview) -> None:
        self.item = item
        with suppress(OSError):  # it died, which is told where its result is missing
            self.pipe.send_bytes(content)

    def result(self) -> Any:
        content = self.pipe.recv_bytes()
        self._answered = True
        return ForkingPickler.loads(content)

    def death(self) -> DataError:
        """What to tell of a worker whose pipe has ended."""
        self._process.join(SHUTDOWN_TIMEOUT)
        how = how_it_died(self._process) or "without a word"
        what = f"a worker process ({self._process.pid}) died, {how}"
        if self._answered or (self._process.exitcode or 0) < 0:
            return DataError(
                f"{what}; lack of memory is the usual reason: try fewer workers (num_workers) or smaller batches"
            )
        return DataError(
            f"{what}, before it computed anything; its own message is above. A script that starts workers needs "
            "if __name__ == '__main__': around what it runs, since each worker imports it"
        )

    def kill(self) -> None:
        if self._process.is_alive():
            self._process.kill()

    def join(self) -> None:
        self._process.join(SHUTDOWN_TIMEOUT)
        self.kill()
        self._process.join()


# -- in the worker ----------------------------------------------------------------------------------------------------


def _work(pipe: Connection, function: bytes) -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
    end_with_parent()
    compute = _loaded(function)
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_computed(compute, pipe.recv_bytes()))


def _loaded(function: bytes) -> Any:
    try:
        return ForkingPickler.loads(function)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        return Failed(
            DataError(
                f"a worker process cannot load what it is to compute ({found}); define it in a module (.py), not in a "
                "notebook, or use num_workers=0"
            ),
            "a worker",
        )


def _computed(compute: Any, item: bytes) -> memoryview:
    if isinstance(compute, Failed):
        return ForkingPickler.dumps(compute)
    try:
        return _pickled(compute(ForkingPickler.loads(item)), "the result of a worker")
    except Exception as error:
        return ForkingPickler.dumps(Failed(error, "a worker"))


# -- on both sides ----------------------------------------------------------------------------------------------------


class _Raised:
    """An error of this process, in the place of a result."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _contents(items: Iterable[Any]) -> Iterator[memoryview | _Raised]:
    """The items, pickled; an error of theirs is told in its turn, after the results of the items before."""
    try:
        for item in items:
            yield _pickled(item, "an item for a worker")
    except Exception as error:
        yield _Raised(error)


def _opened(found: Any) -> Any:
    """A result; or the error in its place, raised."""
    if isinstance(found, _Raised):
        raise found.error
    if isinstance(found, Failed):
        for note in found.notes:
            say_where(found.error, note)
        if not isinstance(found.error, DataError):
            say_where(found.error, f"in a worker process:\n{found.trace}")
        raise found.error
    return found


def _pickled(value: Any, what: str) -> memoryview:
    try:
        return ForkingPickler.dumps(value)
    except Exception as error:
        raise DataError(
            f"{what} cannot be sent between processes ({type(error).__name__}: {error}); use functions and classes of "
            "a module, not lambdas or open files, or num_workers=0"
        ) from error


@contextmanager
def _signals_held() -> Iterator[None]:
    """Start a process in which signals are held back until it ignores them; in this one they come afterwards."""
    resource_tracker.ensure_running()  # which would let them through again when the fork server starts it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
