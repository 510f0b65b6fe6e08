"""`RunningLoader`: a `DataLoader` in the middle of a pass, its workers, their errors and their end.

In a worker, or in the thread that reads without workers, an error would be printed and lost as far as the run is
concerned, and random numbers would differ in a run that resumes in mid-pass. So an error travels as a value, `Failed`,
in the place of its batch, and with each batch a worker's generators are seeded with seed, pass and batch.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import numpy as np

from onion.data import batch_parts
from onion.data.source import say_where
from onion.data.worker_process import SHUTDOWN_TIMEOUT, Failed, end_with_parent, how_it_died, seed_generators
from onion.errors import DataError

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a name of the system
"""Where Linux has it; elsewhere there is no such folder."""

GONE_INTERVAL = 0.01
"""Seconds between two looks at whether a worker is gone."""


class RunningLoader(Iterator[tuple[int, Any]]):
    """The batches of one pass of a DataLoader, each with the number of its examples.

    Args:
        loader: The DataLoader.
        counted: Whether it yields what `Making` returns, or batches as they are.
        dropped: Batches to load and drop first.
        resumed: Whether the pass is entered in the middle, so that no batch may be left.

    Raises:
        DataError: While batches are drawn: a worker died, or the pass has fewer batches, or none.
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
            sys.modules["paddle"].base.core._erase_process_pids(id(self._iterator))

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
            self._refuse_dead_workers(error)
            raise
        self._given += 1
        return _opened(made) if self._counted else (_count(made), _fields(made))

    def _refuse_dead_workers(self, error: Exception) -> None:
        for worker in self._workers:
            if how := how_it_died(worker):
                raise DataError(
                    f"a worker of the DataLoader (process {worker.pid}) died, {how}; lack of "
                    "memory, or of space in /dev/shm, is the usual reason: try fewer workers or use_shared_memory=False"
                ) from error

    def close(self, timeout: float = SHUTDOWN_TIMEOUT) -> None:
        """End the pass and its workers; kill those that have not ended after ``timeout`` seconds in all."""
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
            _remove_segments(worker.pid)


def _remove_segments(worker: int) -> None:
    """Remove the shared memory that a worker has left, which it does itself unless it was killed.

    What was received of it is mapped and stays.
    """
    for path in SHARED_MEMORY.glob(f"paddle_{worker}_*"):
        path.unlink(missing_ok=True)


def _leave_nothing() -> None:
    """Remove the shared memory of this worker, which is about to leave.

    Its main thread may make more until the very end, so another process removes what is there after that.
    """
    sys.modules["paddle"].base.core._cleanup_mmap_fds()
    worker = os.getpid()
    try:
        child = os.fork()
    except OSError:  # there is no room for one more process
        _remove_segments(worker)
        return
    if child == 0:
        while os.getppid() == worker:
            time.sleep(GONE_INTERVAL)
        _remove_segments(worker)
        os._exit(0)


def _remove_what_nobody_receives(parent: int) -> None:
    """Remove the shared memory of this worker, which makes no more, if its parent has ended."""
    if os.getppid() != parent:
        _remove_segments(os.getpid())


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
        return (
            tuple(inner)
            if any(isinstance(each, sys.modules["paddle"].Tensor | tuple | dict) for each in inner)
            else inner
        )
    return batch


def _count(batch: Any) -> int:
    """How many examples a batch has that the user made; 0 where it does not tell."""
    try:
        return batch_parts.examples(batch)
    except DataError:
        return 0


class Reading:
    """A map-style dataset, read by (batch, example), both from 0.

    ``seeds`` is (seed, pass) for the generators; None: they are not seeded, since the run draws from them too.
    """

    def __init__(self, dataset: Any, seeds: tuple[int, int] | None) -> None:
        self._dataset, self._seeds = dataset, seeds
        self._batch = -1

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, key: tuple[int, int] | Failed) -> Any:
        if isinstance(key, Failed):  # whoever gives the numbers could not
            return key
        batch, index = key
        if self._seeds is not None and batch != self._batch:
            seed_generators(*self._seeds, batch)
            self._batch = batch
        try:
            return self._dataset[index]
        except Exception as error:
            return Failed(error, f"example {index} (from 0)")


class Streaming:
    """An iterable-style dataset whose error is its last example."""

    def __init__(self, dataset: Iterable[Any]) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._dataset
        except Exception as error:
            yield Failed(error, "the dataset")


AN_ARRAY = np.zeros(1, np.int8)


class Making:
    """Make a batch of examples; return ``[number of examples, batch]``, or ``[Failed, None]``.

    A batch without an array is followed by one, since the DataLoader would take it for the end of the pass. With
    ``whole`` the dataset yields batches already, and the number of examples is unknown (None).
    """

    def __init__(self, collate: Callable[[Any], Any], whole: bool) -> None:
        self._collate, self._whole = collate, whole

    def __call__(self, examples: Sequence[Any]) -> list[Any]:
        """Make the batch of these examples."""
        for example in examples:
            if isinstance(example, Failed):
                return [example, None, AN_ARRAY]
        try:
            batch = self._collate(examples[0] if self._whole else examples)
        except Exception as error:
            return [Failed(error, "a batch that is put together"), None, AN_ARRAY]
        return [None if self._whole else len(examples), batch, *([] if _has_array(batch) else [AN_ARRAY])]


def _has_array(batch: Any) -> bool:
    """Whether the DataLoader finds an array in a batch, which costs less than to send it one more."""
    if isinstance(batch, Mapping):
        return any(map(_has_array, batch.values()))
    if isinstance(batch, list | tuple):
        return any(map(_has_array, batch))
    return isinstance(batch, np.ndarray | sys.modules["paddle"].Tensor)


AFTER_QUEUES = -10
"""The priority of what a worker does when the threads that send its batches have ended, which have -5."""


class Beginning:
    """Begin a worker by its own ``worker_init_fn``; it also ends when the parent process does.

    Paddle's loop ends by itself if the parent ended while a batch was made, which is sent after Paddle has cleaned up.
    """

    def __init__(self, own: Callable[[int], Any] | None) -> None:
        self._own = own

    def __call__(self, worker: int) -> None:
        """Begin the worker of this number."""
        end_with_parent(_leave_nothing)
        Finalize(None, _remove_what_nobody_receives, [os.getppid()], exitpriority=AFTER_QUEUES)
        if self._own is not None:
            self._own(worker)
