"""`PaddleBatches`: the batches of a `paddle.io.DataLoader`, as it makes them, pass after pass.

Paddle's samplers draw from the global generators whenever they are iterated, so a pass could not be entered in the
middle. Here the same samplers draw from a generator made of ``(seed, pass)``, and the global ones stay as they are.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from onion.data.arguments import at_least, check_timeout
from onion.data.cut import Cut
from onion.data.interruptible_wait import InterruptibleWait
from onion.data.making import Counted
from onion.data.order import PADDLE, shuffled
from onion.data.paddle_loader_pass import Beginning, Making, Reading, RunningLoader, Streaming
from onion.data.passes import Batches, too_far
from onion.data.prefetch import Prefetcher
from onion.data.source import fingerprint, has_length, named
from onion.data.worker_process import SHUTDOWN_TIMEOUT, Failed
from onion.errors import DataError

_LOG = logging.getLogger("onion")


def is_data_loader(given: Any) -> bool:
    """Whether something is a `paddle.io.DataLoader`, of that class or a subclass."""
    return named(given, "paddle.", "DataLoader")


class PaddleBatches:
    """The batches that a DataLoader makes, with its workers and in its order; one object serves every pass.

    Each pass has an iterator and workers of its own, which end with it (``persistent_workers`` does not hold). How a
    pass is entered in the middle:

    ====================================================  ====================================================
    the DataLoader has                                    batches that are skipped
    ====================================================  ====================================================
    a map-style dataset, and a sampler that is known      are not loaded; the order is a function of seed and pass
    (`draws_again`)
    a map-style dataset, and another ``batch_sampler``    are not loaded, but drawn from it once more, in the same order
                                                          if it draws from ``set_epoch``, or numpy's or Python's
                                                          global generator when it begins
    an `IterableDataset`, or methods of a subclass        are loaded once more, and dropped; this is logged
    ====================================================  ====================================================

    In the first two cases the random numbers that workers draw are a function of seed, pass and batch. A dataset that
    draws random numbers without workers draws them in a thread, from the generators that the run draws from.

    A list of fields, which the DataLoader makes of tuples, is a tuple here: of a list others take the length for the
    number of examples.

    Args:
        loader: The DataLoader. It is not changed.
        seed: Of the random orders and of the workers' random numbers, any integer from 0. Default 0.
        prefetch: Batches taken ahead in a background thread, besides those the DataLoader itself prepares; 0 means no
            thread, and then a signal is answered when the next batch is there. Default 2.
        timeout: Seconds to wait for a batch at most; then it is a DataError. Needs the thread. Default: as long as it
            takes.

    Raises:
        DataError: It has no batch. While batches are drawn: the same; or a worker died.
        ValueError: An argument is out of its range.

    What dataset and ``collate_fn`` raise comes out as it is, with a note that says which example it was about and where
    in the worker it came up; an error whose class or arguments cannot be sent by a worker comes as a RuntimeError.
    """

    cut: Cut | None = None

    def __init__(self, loader: Any, *, seed: int = 0, prefetch: int = 2, timeout: float | None = None) -> None:
        at_least("seed", seed, 0)
        at_least("prefetch", prefetch, 0)
        check_timeout(timeout, prefetch)
        self.seed, self.prefetch, self.timeout = seed, prefetch, timeout
        self._given = loader
        io = sys.modules["paddle"].io
        self._own_ways = type(loader) is not io.DataLoader  # a subclass may give anything in any way
        self._streams = self._own_ways or isinstance(loader.dataset, io.IterableDataset)
        self._whole = not self._own_ways and loader.batch_sampler is None  # the dataset's examples are batches
        self._sampler: Any = None
        if not self._streams:
            self._sampler = [[i] for i in range(len(loader.dataset))] if self._whole else loader.batch_sampler
        if self.batches_per_pass == 0:
            raise DataError(
                "the DataLoader has no batch: its dataset has none, or drop_last=True leaves nothing; use a smaller "
                "batch_size"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """How its batches are made, as far as that can be told."""
        told: dict[str, Any] = {"batches": type(self._given).__name__, "seed": self.seed}
        if not self._own_ways and self._given.collate_fn is not None:
            told["collate"] = self._given.collate_fn
        for name in ("batch_size", "drop_last"):
            told[name] = getattr(self._given.batch_sampler, name, None)
        if not self._streams:
            inner = getattr(self._sampler, "sampler", None)
            told["sampler"] = [type(each).__name__ for each in (self._sampler, inner) if each is not None]
            if inner is None:  # else its class tells; and Paddle 2.6 has no such attribute there
                told["shuffle"] = getattr(self._sampler, "shuffle", None)
        return told

    @property
    def fingerprint(self) -> str | None:
        """What tells its dataset from others; see `onion.data.source.fingerprint`."""
        return fingerprint(self._given.dataset)

    @property
    def batches_per_pass(self) -> int | None:
        """How many batches a pass has; None where only reading the dataset to its end would tell."""
        return len(self._sampler) if self._sampler is not None and has_length(self._sampler) else None

    def batches(self, pass_id: int, start: int = 0, wait: InterruptibleWait | None = None) -> Batches:
        """The batches of one pass, from batch ``start`` on; arguments and errors are those of `Loader.batches`."""
        at_least("pass_id", pass_id, 0)
        at_least("start", start, 0)
        total = None
        with seeded(self.seed, pass_id):  # the DataLoader draws its workers' seeds
            if self._streams:
                running = RunningLoader(self._streaming(), counted=not self._own_ways, dropped=start, resumed=start > 0)
            else:
                order = self._order(pass_id)
                if isinstance(order, list):
                    total = len(order) - start
                    if total < 0:
                        raise too_far(start, len(order))
                running = RunningLoader(self._reading(pass_id, _Numbered(order, start)), resumed=start > 0)
        if self._streams and start:
            what = f"{self._given.dataset!r} of {type(self._given).__name__}"
            _LOG.warning(
                "resuming loads and drops %d batches, since %s cannot start in the middle of a pass", start, what
            )
        ahead = _Ahead(running, self.prefetch, self.timeout) if self.prefetch else running
        return Batches(ahead, total, wait or InterruptibleWait())

    def _order(self, pass_id: int) -> Any:
        """The numbers of the examples of each batch: a list if the sampler is known, else what draws them."""
        if draws_again(self._sampler):
            return order_of(self._sampler, self.seed, pass_id)
        tell_pass(self._sampler, pass_id)
        return self._sampler

    def _streaming(self) -> Any:
        """A DataLoader that reads an iterable dataset from its beginning; a subclass reads as it will."""
        if self._own_ways:
            return self._given
        ours = self._copy(Streaming(self._given.dataset))
        if self._whole:
            ours.batch_sampler = repeat([None])
        return ours

    def _reading(self, pass_id: int, batch_sampler: _Numbered) -> Any:
        """A DataLoader that reads a map-style dataset in this order."""
        apart = self._given.num_workers > 0
        ours = self._copy(Reading(self._given.dataset, (self.seed, pass_id) if apart else None))
        ours.batch_sampler = batch_sampler
        return ours

    def _copy(self, dataset: Any) -> Any:
        from paddle.io.dataloader.collate import default_collate_fn, default_convert_fn

        ours = copy(self._given)
        ours.dataset, ours.auto_collate_batch = dataset, True
        ours.collate_fn = Making(
            self._given.collate_fn or (default_convert_fn if self._whole else default_collate_fn), self._whole
        )
        ours.worker_init_fn = Beginning(self._given.worker_init_fn)
        ours._persistent_workers, ours._iterator = False, None
        return ours


class _Numbered:
    """A batch sampler that gives each example with the number of its batch in the pass.

    Skipped batches and the first one are drawn at once: a sampler that shuffles when it begins does so here, not in a
    thread.
    """

    def __init__(self, order: Iterable[Sequence[int]], start: int) -> None:
        left = enumerate(order)
        first = next(islice(left, start, None), None)
        self._batches = left if first is None else chain([first], left)

    def __iter__(self) -> Iterator[list[Any]]:
        try:
            for batch, indices in self._batches:
                yield [(batch, index) for index in indices]
        except Exception as error:
            yield [Failed(error, "the batch_sampler")]


class _Ahead(Prefetcher[Counted]):
    """Batches taken ahead, and the end of the DataLoader with them."""

    def __init__(self, running: RunningLoader, depth: int, timeout: float | None) -> None:
        self._running = running
        super().__init__(running, depth, timeout=timeout)

    def close(self) -> None:
        super().close()
        self._running.close(min(self._close_timeout, SHUTDOWN_TIMEOUT))


PLAIN = (list, tuple, range, np.ndarray)
"""What is no sampler of Paddle's and gives the same numbers each time all the same."""


def draws_again(sampler: Any) -> bool:
    """Whether a batch sampler, iterated twice from one state of numpy's generator, gives the same batches.

    That is known of Paddle's own classes and of plain sequences. Anybody else's may keep a state of its own.
    """
    io = sys.modules["paddle"].io
    if type(sampler) is not io.BatchSampler:
        return type(sampler) in (io.DistributedBatchSampler, *PLAIN)
    inner = sampler.sampler
    if type(inner) is io.RandomSampler:
        return not inner.generator  # an iterator of the user's, which is used up
    return type(inner) in (io.SequenceSampler, io.WeightedRandomSampler, io.SubsetRandomSampler, *PLAIN)


def order_of(sampler: Any, seed: int, pass_id: int) -> list[list[int]]:
    """The numbers of the examples of each batch of a pass; of a sampler that `draws_again`.

    A DistributedBatchSampler shuffles by its epoch alone, which here is the pass: all ranks have to agree.
    """
    ours = copy(sampler)
    tell_pass(ours, pass_id)
    inner: Any = getattr(ours, "sampler", None)
    if type(inner) is sys.modules["paddle"].io.SubsetRandomSampler:
        # It draws from Paddle's generator, which cannot be put back on the CPU of Paddle 2.6.
        ours.sampler = [inner.indices[i] for i in shuffled(len(inner.indices), seed, pass_id).tolist()]
    with seeded(seed, pass_id):
        return [list(map(int, batch)) for batch in ours]


def tell_pass(sampler: Any, pass_id: int) -> None:
    """Tell a sampler which pass it is drawn for, by ``set_epoch``, if it has that."""
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(pass_id)


@contextmanager
def seeded(seed: int, pass_id: int) -> Iterator[None]:
    """Have Python's and numpy's global generators begin where (seed, pass) says; then put them back."""
    before = random.getstate(), np.random.get_state()
    words = np.random.SeedSequence(seed, spawn_key=(pass_id, PADDLE)).generate_state(8)
    random.seed(words.tobytes())
    np.random.seed(words)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
