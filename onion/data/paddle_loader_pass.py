"""`RunningLoader`: a `DataLoader` in the middle of a pass, its workers, their errors and their end."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from onion.data import batch_parts
from onion.data.error_location import say_where
from onion.data.paddle_loader_workers import Failed
from onion.errors import DataError

PATIENCE = 5.0
"""Seconds that threads and workers have to end."""


class RunningLoader(Iterator[tuple[int, Any]]):
    """The batches of one pass of a DataLoader, each with the number of its examples.

    Args:
        loader: The DataLoader.
        counted: Whether it gives what `onion.data.paddle_loader_workers.Making` makes, or batches as they are.
        dropped: How many batches to load and drop first.
        resumed: Whether the pass is entered in the middle, behind its last batch perhaps.

    Raises:
        DataError: While batches are drawn: a worker died; there are fewer batches than are to be dropped, or none.
    """

    def __init__(self, loader: Any, *, counted: bool = True, dropped: int = 0, resumed: bool = False) -> None:
        self._counted, self._dropped, self._resumed = counted, dropped, resumed
        self._given, self._closed = 0, False
        with _no_handler(), _no_garbage():
            self._iterator: Any = iter(loader)
        self._workers = tuple(getattr(self._iterator, "_workers", ()))
        if self._workers:
            # Or a signal's handler would raise the death of a worker wherever the run is just then. It is noticed
            # where the next batch is missing instead.
            _core()._erase_process_pids(id(self._iterator))

    def __next__(self) -> tuple[int, Any]:
        while self._given < self._dropped:
            try:
                self._take()
            except StopIteration:
                raise DataError(
                    f"cannot continue after batch {self._dropped} of this pass: it has {self._given} batches; did the "
                    "data change since the checkpoint?"
                ) from None
        try:
            return self._take()
        except StopIteration:
            if self._given == 0 and not self._resumed:
                raise DataError("the DataLoader returned no batch in this pass") from None
            raise

    def _take(self) -> tuple[int, Any]:
        try:
            made = next(self._iterator)
        except StopIteration:
            raise
        except Exception as error:
            self._tell_of_the_dead(error)
            raise
        self._given += 1
        return _opened(made) if self._counted else (_count(made), _fields(made))

    def _tell_of_the_dead(self, error: Exception) -> None:
        for worker in self._workers:
            if worker.exitcode:
                raise DataError(
                    f"a worker of the DataLoader (process {worker.pid}) died, {_how(worker.exitcode)}; lack of "
                    "memory, or of space in /dev/shm, is the usual reason: try fewer workers or use_shared_memory=False"
                ) from error

    def close(self, timeout: float = PATIENCE) -> None:
        """End the pass and its workers, and kill those that have not ended in time; harmless when called again.

        Args:
            timeout: The time for all of them, in seconds.
        """
        if self._closed:
            return
        self._closed = True
        running, self._iterator = self._iterator, iter(())
        if not hasattr(running, "_exit_thread_expectedly"):  # a subclass has an iterator of its own
            return
        running._exit_thread_expectedly()  # wakes the thread, which _try_shutdown_all would wait for a second at a time
        if self._workers:
            running._try_shutdown_all(timeout / len(self._workers))
        else:
            if running._thread is not None:  # which is gone when the pass has come to its end
                running._thread.join(timeout)
            running._try_shutdown_all()
        for worker in self._workers:
            if worker.is_alive():
                worker.kill()
                worker.join()


def _core() -> Any:
    return sys.modules["paddle"].base.core


@contextmanager
def _no_handler() -> Iterator[None]:
    """Keep Paddle from handling SIGCHLD, which is for ever, for the main thread only, and not needed: see above."""
    module = import_module("paddle.io.multiprocess_utils")
    before, module._SIGCHLD_handler_set = module._SIGCHLD_handler_set, True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module._SIGCHLD_handler_set = before  # type: ignore[attr-defined]


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep workers from collecting what is garbage now.

    The iterator of an earlier pass may be among it, of one that was left early: its threads are not there in a forked
    process, and its end would wait for them for ever.
    """
    ours = gc.get_freeze_count() == 0
    gc.freeze()
    try:
        yield
    finally:
        if ours:
            gc.unfreeze()


def _opened(made: Any) -> tuple[int, Any]:
    """The number of examples and the batch, of what `Making` makes; or its error."""
    first = made[0]
    if isinstance(first, Failed):
        place = f"{first.place}, read by the DataLoader"
        say_where(first.error, place if isinstance(first.error, DataError) else f"{place}:\n{first.trace}")
        raise first.error
    batch = _fields(made[1])
    return _count(batch) if first is None else first, batch


def _fields(batch: Any) -> Any:
    """A batch whose lists of fields, as the DataLoader makes of tuples, are tuples; a list of other things stays."""
    if isinstance(batch, dict):
        return {name: _fields(value) for name, value in batch.items()}
    if isinstance(batch, list):
        inner = [_fields(value) for value in batch]
        return tuple(inner) if any(isinstance(each, (_tensor(), tuple, dict)) for each in inner) else inner
    return batch


def _count(batch: Any) -> int:
    """How many examples a batch has that the user made; 0 where it does not tell."""
    try:
        return batch_parts.examples(batch)
    except DataError:
        return 0


def _tensor() -> Any:
    return sys.modules["paddle"].Tensor


def _how(exitcode: int) -> str:
    return f"killed by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"with exit code {exitcode}"
