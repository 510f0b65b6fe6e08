"""What runs where a `DataLoader` reads: in its workers, or in a thread of its own.

There an error would be printed and lost, as far as the run is concerned, and a random number would be another one in a
run that goes on in mid-pass. So an error travels as a value, `Failed`, in the place of its batch; and a worker's
generators are made anew, of seed, pass and batch, with each batch.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import parent_process
from typing import Any

import numpy as np


class Failed:
    """An error on its way out of a worker.

    Attributes:
        error: The error; where it cannot be sent to another process, a RuntimeError that tells it.
        place: What was being read.
        trace: The traceback, as text.
    """

    __slots__ = ("error", "place", "trace")

    def __init__(self, error: Exception, place: str) -> None:
        self.trace = "".join(traceback.format_exception(error))
        self.place = place
        # Of its own attributes none can be sent for sure; a thread's errors go the same way as a worker's.
        self.error = type(error)(*error.args) if _travels(error) else RuntimeError(f"{type(error).__name__}: {error}")


def _travels(error: Exception) -> bool:
    """Whether an error comes to another process as what it is: by a class that is found there, and plain arguments."""
    kind = type(error)
    if isinstance(error, StopIteration):  # which would be taken for the end of the pass
        return False
    known = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    plain = all(isinstance(each, str | int | float | None) for each in error.args)
    try:
        return known and plain and str(kind(*error.args)) == str(error)
    except Exception:
        return False


class Reading:
    """A map-style dataset, read by (batch, example), both from 0.

    Args:
        dataset: The user's.
        seeds: What the random numbers of a pass are made of: (seed, pass). None: the generators of the process are not
            touched, since the run draws from them too.
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
            _seed_all(*self._seeds, batch)
            self._batch = batch
        try:
            return self._dataset[index]
        except Exception as error:
            return Failed(error, f"example {index} (from 0)")


def _seed_all(seed: int, pass_id: int, batch: int) -> None:
    """Seed all generators of a worker."""
    words = np.random.SeedSequence(seed, spawn_key=(pass_id, batch, 0)).generate_state(8)
    random.seed(words.tobytes())
    np.random.seed(words)
    sys.modules["paddle"].seed(int(words[0]))


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
    """Make a batch of examples; give ``[how many they are, the batch]``, or ``[Failed, None]``.

    Where there is no array in it an array follows, since the DataLoader takes a batch without one for the end.

    Args:
        collate: The DataLoader's function.
        whole: Whether what the dataset gives is a batch already; how many examples it has is not known then (None).
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


class Beginning:
    """Begin a worker: it ends when the process that it works for is gone, and not only when it is told to.

    Args:
        own: The DataLoader's ``worker_init_fn``; None: there is none.
    """

    def __init__(self, own: Callable[[int], Any] | None) -> None:
        self._own = own

    def __call__(self, worker: int) -> None:
        """Begin the worker of this number."""
        threading.Thread(target=_end_with_parent, name="onion-parent", daemon=True).start()
        if self._own is not None:
            self._own(worker)


def _end_with_parent() -> None:
    """Wait for the end of the process that this one was forked from; then leave, and the shared memory with it."""
    if (parent := parent_process()) is not None:
        parent.join()
        sys.modules["paddle"].base.core._cleanup_mmap_fds()
        os._exit(1)
