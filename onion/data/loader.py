"""`Loader`: from a data source to the batches of a pass; `InfiniteLoader`: pass after pass."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from onion.data import batching, making, order
from onion.data.cut import Cut
from onion.data.interruptible_wait import InterruptibleWait
from onion.data.making import Counted
from onion.data.prefetch import Prefetcher
from onion.data.source import Indexed, Stream, as_source, fingerprint
from onion.data.workers import Workers
from onion.errors import DataError

Length = Callable[[Any], int] | Sequence[int] | NDArray[np.integer]
"""The length of an example by a function, or the lengths of all."""

Weights = Sequence[float] | NDArray[np.floating | np.integer]
"""How often each example is drawn, in proportion to the others."""


class Work(NamedTuple):
    """What is left of a pass: how a batch is made, of what each, and how many there are, if that is known."""

    make: Callable[[Any], Counted]
    given: Iterator[Any]
    total: int | None


class Loader:
    """Reads, orders and batches examples; one object serves every pass.

    The order of a pass depends on `seed` and the number of the pass only: entered in the middle it goes on exactly as
    it would have. The same holds for what is in the batches, as long as reading an example draws no random numbers from
    a global generator. Where it does, give ``num_workers``, or ``prefetch=0``; otherwise the thread has drawn for
    batches not yet handed out. With either of them, what is drawn for a piece of a batch (``cut``) depends on seed,
    pass, batch and piece alone.

    Args:
        source: A path, sequence, iterable, dataset or function; see `onion.data.source`.
        batch_size: Examples in a batch, from 1. Default 32.
        shuffle: Another random order in each pass. Needs a source with a length.
        shuffle_buffer: How many examples of a stream are held, of which a random one comes next. Default: none; a
            stream comes in its own order.
        weights: One number for each example: a pass draws as many examples as there are, with replacement, each as
            often as its weight says (`onion.data.balanced` makes weights of labels). Needs a source with a length.
        seed: Of the random orders, any integer from 0. Default 0.
        lengths: Put examples of similar length into one batch: a function ``example -> int``, which reads every example
            once before the first pass, or one length an example. Needs a source with a length.
        collate: A function from a list of examples to a batch. Default `onion.data.collate`.
        drop_last: Leave out a last batch that is not full. Default: keep it.
        prefetch: Batches made ahead in a background thread; 0 means no thread, and a lone batch needs none. Default 2.
        timeout: Seconds to wait for a batch at most; then it is a DataError. The first batch of a stream that is
            resumed takes the time of all those before it. Needs the thread. Default: as long as it takes.
        num_workers: Processes that make the batches: they read the examples of an indexed source and collate them; of a
            stream, which this process reads, they only collate. The batches, their order and a resumed pass are the
            same for any number. What is drawn from global generators meanwhile depends on seed, pass and batch; without
            workers on the generators of this process. Source and `collate` are pickled; see `onion.data.workers`.
            Default 0: this process does it all.

    Raises:
        DataError: The source cannot be read, is empty, or lacks the length that `shuffle`, `lengths` or `weights` need;
            `weights` do not fit; or `shuffle_buffer` is given for one that has a length. While batches are drawn: it
            has another length than it had, fewer examples than its length, or gives nothing; a worker died.
        ValueError: An argument is out of its range.

    Attributes:
        cut: The pieces of each batch that this process reads, of several that share the batches. None: whole batches.

    What source and `collate` raise comes out as it is, with a note that says which examples it was about.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int = 32,
        *,
        shuffle: bool = False,
        shuffle_buffer: int | None = None,
        weights: Weights | None = None,
        seed: int = 0,
        lengths: Length | None = None,
        collate: Callable[[list[Any]], Any] = batching.collate,
        drop_last: bool = False,
        prefetch: int = 2,
        timeout: float | None = None,
        num_workers: int = 0,
    ) -> None:
        at_least("batch_size", batch_size, 1)
        at_least("seed", seed, 0)
        at_least("prefetch", prefetch, 0)
        at_least("num_workers", num_workers, 0)
        at_least("shuffle_buffer", 1 if shuffle_buffer is None else shuffle_buffer, 1)
        check_timeout(timeout, prefetch)
        self.batch_size, self.shuffle, self.seed, self.drop_last = batch_size, shuffle, seed, drop_last
        self.prefetch, self.timeout, self.num_workers = prefetch, timeout, num_workers
        self.shuffle_buffer = shuffle_buffer
        self.cut: Cut | None = None
        self._collate, self._length = collate, lengths
        self._lengths: NDArray[np.integer] | None = None
        self._weights: NDArray[np.float64] | None = None
        self._source = as_source(source)
        if isinstance(self._source, Stream):
            _refuse_of_stream(shuffle=shuffle, lengths=lengths is not None, weights=weights is not None)
        else:
            self._check_indexed(self._source, weights)

    def _check_indexed(self, source: Indexed, weights: Weights | None) -> None:
        if self.shuffle_buffer is not None:
            raise DataError("shuffle_buffer= is for a stream; this source has a length, so shuffle=True shuffles all")
        self._size = len(source)
        if weights is not None:
            self._weights = _checked_weights(weights, self._size)
        if self.drop_last and self._size < self.batch_size:
            few = f"{self._size} examples do not fill one batch of {self.batch_size}"
            raise DataError(f"{few}, and drop_last=True leaves nothing; use a smaller batch_size")
        if self._length is not None and not callable(self._length):
            self._lengths = _checked_lengths(self._length, self._size)

    @property
    def fingerprint(self) -> str | None:
        """What tells its data from others; see `onion.data.source.fingerprint`."""
        return fingerprint(self._source)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the order; and how batches are made, as far as that is not by default."""
        order = {name: getattr(self, name) for name in ("batch_size", "shuffle", "seed", "drop_last")}
        own: dict[str, Any] = {"by_length": True} if self._length is not None else {}
        if self.shuffle_buffer is not None:
            own["shuffle_buffer"] = self.shuffle_buffer
        if self._weights is not None:
            own["weights"] = f"crc32 {zlib.crc32(self._weights.tobytes()):08x}"
        made = {} if self._collate is batching.collate else {"collate": self._collate}
        return {**order, **own, **made}

    @property
    def batches_per_pass(self) -> int | None:
        """How many batches a pass has; None where only reading the source to its end would tell."""
        if isinstance(self._source, Stream):
            return None
        return self._size // self.batch_size if self.drop_last else -(-self._size // self.batch_size)

    def batches(self, pass_id: int, start: int = 0, wait: InterruptibleWait | None = None) -> Batches:
        """The batches of one pass.

        Args:
            pass_id: The pass, from 0.
            start: Batches to skip. Skipped examples are not read, except those of a stream that is not
                `onion.data.source.Skippable`.
            wait: What may end the wait for a batch. Default: nothing.

        Raises:
            DataError: The pass is shorter, the source cannot give another pass, or its length has changed.
        """
        at_least("pass_id", pass_id, 0)
        at_least("start", start, 0)
        if isinstance(self._source, Stream):
            work = self._of_stream(self._source, pass_id, start)
        else:
            work = self._of_indexed(self._source, pass_id, start)
        made, wake = self._made(work, pass_id, start)
        lone = work.total is not None and work.total <= 1 and self.timeout is None  # it is there sooner than a thread
        ahead = Prefetcher(made, self.prefetch, timeout=self.timeout, wake=wake) if self.prefetch and not lone else made
        return Batches(ahead, work.total, wait or InterruptibleWait())

    def _of_stream(self, source: Stream, pass_id: int, start: int) -> Work:
        return Work(making.FromExamples(self._collate), self._lists(source, pass_id, start), None)

    def _of_indexed(self, source: Indexed, pass_id: int, start: int) -> Work:
        self._refuse_other_size(source)
        plan = self._plan(source, pass_id)
        if start > len(plan):
            raise too_far(start, len(plan))
        # Python's integers: a list takes them twice as fast as NumPy's, and a user's dataset expects them.
        numbers = (indices.tolist() for indices in plan[start:])
        return Work(making.FromNumbers(source, self._collate), numbers, len(plan) - start)

    def _made(
        self, work: Work, pass_id: int, start: int
    ) -> tuple[Generator[Counted, None, None], Callable[[], None] | None]:
        """The batches, made here or by workers; and what wakes a thread that waits for workers."""
        make = work.make if self.cut is None else making.InPieces(work.make, self.cut)
        if self.num_workers:
            workers = Workers(making.Seeded(make, self.seed, pass_id), self.num_workers)
            return workers.map(enumerate(work.given, start)), workers.close
        if self.cut is not None and not self.prefetch:  # a thread must not touch the generators of the run
            make, given = making.SeededHere(make, self.seed, pass_id), enumerate(work.given, start)
            return (make(each) for each in given), None
        return (make(each) for each in work.given), None

    def _refuse_other_size(self, source: Indexed) -> None:
        if len(source) != self._size:
            raise DataError(
                f"the data source has {len(source)} examples now, but had {self._size} at first; the order of "
                "a pass depends on that number: pass data that grows as a stream (a function that yields examples)"
            )

    def _plan(self, source: Indexed, pass_id: int) -> list[order.Indices]:
        """Which examples each batch of the pass has."""
        if callable(self._length) and self._lengths is None:
            read = making.FromNumbers(source, self._collate).read
            found = [self._length(one) for i in range(self._size) for one in read((i,))]
            self._lengths = _checked_lengths(found, self._size)
        drawn = None if self._weights is None else order.weighted(self._weights, self.seed, pass_id)
        if self._lengths is not None:
            lengths = self._lengths if drawn is None else self._lengths[drawn]
            batches = order.bucketed(
                lengths, self.batch_size, self.seed, pass_id, drop_last=self.drop_last, shuffle=self.shuffle
            )
            return batches if drawn is None else [drawn[batch] for batch in batches]
        if drawn is None and self.shuffle:
            drawn = order.shuffled(self._size, self.seed, pass_id)
        if drawn is None:
            return order.batches_in_order(self._size, self.batch_size, self.drop_last)
        return order.cut(drawn, self.batch_size, self.drop_last)

    def _lists(self, source: Stream, pass_id: int, start: int) -> Iterator[list[Any]]:
        """The examples of each batch of a stream.

        Those of the first batches are dropped. They are not made if the source can skip them, and neither are those in
        the pieces of other processes, in whose places there is anything then.
        """
        shared = self.cut is not None and self.cut.count < self.cut.of
        if source.size is not None and (start or shared):
            examples = source.skipping(self._skipped(source.size, pass_id, start))
        else:
            examples = source.examples()
        examples = self._streamed(examples, pass_id)
        for done in range(start):
            if not list(islice(examples, self.batch_size)):
                raise too_far(start, done)
        while batch := list(islice(examples, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def _skipped(self, size: int, pass_id: int, start: int) -> bytearray:
        """For each example of a stream 1 if this process does not need it in a pass that it enters there, or 0."""
        skipped = bytearray(size)
        places = self._streamed(range(size), pass_id)
        for place in islice(places, start * self.batch_size):
            skipped[place] = True
        if self.cut is not None:
            while batch := list(islice(places, self.batch_size)):
                for place in batch:
                    skipped[place] = True
                for place in chain.from_iterable(self.cut.parts(batch)):
                    skipped[place] = False
        return skipped

    def _streamed(self, examples: Iterable[Any], pass_id: int) -> Iterator[Any]:
        """A stream in the order in which a pass sees it."""
        if self.shuffle_buffer is None:
            return iter(examples)
        return order.buffered(examples, self.shuffle_buffer, self.seed, pass_id)


class Made(Protocol):
    """What gives the batches of a pass, each with the number of its examples, until it is closed."""

    def __next__(self) -> Counted: ...

    def close(self) -> None:
        """End it."""


class Batches(Iterator[Any]):
    """The batches of one pass, to be iterated once; `Loader.batches` makes it.

    ``len()`` is the number of batches left; a stream has none, and raises TypeError.

    Attributes:
        given: How many batches have been handed out so far, those skipped by `start` not counted.
        examples: How many examples they had.
    """

    __slots__ = ("_made", "_next", "_total", "_wait", "examples", "given")

    def __init__(self, made: Made, total: int | None, wait: InterruptibleWait) -> None:
        self._made, self._next, self._total, self._wait = made, made.__next__, total, wait
        self.given = self.examples = 0

    def __next__(self) -> Any:
        with self._wait:
            count, batch = self._next()
        self.given += 1  # counted only once it is here and the wait cannot be ended any more (interruptible_wait.py)
        self.examples += count
        return batch

    def __len__(self) -> int:
        if self._total is None:
            raise TypeError("a stream does not know how many batches are left")
        return self._total - self.given

    def put_back(self, examples: int) -> None:
        """Count the batch that was handed out last, of so many examples, as not handed out."""
        self.given -= 1
        self.examples -= examples

    def __bool__(self) -> bool:
        return True  # as every iterator; without this, len() would decide

    def close(self) -> None:
        """End the pass here: no more batches come, and the background thread is gone. Harmless when called again."""
        if self._wait.asked and isinstance(self._made, Prefetcher):
            self._made.hurry()
        self._made.close()


class Passes(Protocol):
    """The batches of each pass; one object serves every pass.

    Attributes:
        cut: The pieces of each batch that this process reads; None: whole batches.
    """

    cut: Cut | None

    @property
    def settings(self) -> dict[str, Any]:
        """Order and make of the batches, as plain data: a run that goes on from a checkpoint has the same."""

    @property
    def fingerprint(self) -> str | None:
        """What tells its data from others; see `onion.data.source.fingerprint`."""

    @property
    def batches_per_pass(self) -> int | None:
        """How many batches a pass has; None where only reading the source to its end would tell."""

    def batches(self, pass_id: int, start: int = 0, wait: InterruptibleWait | None = None) -> Batches:
        """The batches of one pass, from batch `start` on; see `Loader.batches`."""


class InfiniteLoader(Iterator[Any]):
    """The batches of a loader, pass after pass.

    It may be closed at any time, which ends the loader's thread; the next batch continues where this one stopped. The
    source has to be one that can be read again. Several may share a loader; each has its own place.

    Attributes:
        pass_id: The loader's pass, from 0.
        batch: Batches of this pass handed out so far.
        given: Batches handed out in all, and ``examples`` in them.
        wait: What ends the wait for a batch, from the next opening on.
    """

    def __init__(self, loader: Passes) -> None:
        self._loader = loader
        self._batches: Batches | None = None
        self.wait = InterruptibleWait()
        self.pass_id = self.batch = self.given = self.examples = 0

    def __next__(self) -> Any:
        try:
            return self._take()
        except StopIteration:
            self.close()
            self.pass_id, self.batch = self.pass_id + 1, 0
        try:
            return self._take()
        except StopIteration:
            raise DataError(f"the data returned no batch in pass {self.pass_id}, so the pass would never end") from None

    def _take(self) -> Any:
        if self._batches is None:
            self._batches = self._loader.batches(self.pass_id, self.batch, self.wait)
        before = self._batches.examples
        batch = next(self._batches)
        self.batch, self.given = self.batch + 1, self.given + 1
        self.examples += self._batches.examples - before
        return batch

    def put_back(self, examples: int) -> None:
        """Count the batch that was handed out last, of so many examples, as not handed out."""
        self.batch, self.given = self.batch - 1, self.given - 1
        self.examples -= examples

    @property
    def place(self) -> str:
        """Where the next batch is, for a person to read."""
        return place_of(self.pass_id, self.batch)

    def close(self) -> None:
        """End the loader's thread here; the place is kept. Harmless when called again."""
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.close()

    def state_dict(self) -> dict[str, int]:
        """The place, and the counts."""
        return {"pass": self.pass_id, "batch": self.batch, "given": self.given, "examples": self.examples}

    def load_state_dict(self, saved: Mapping[str, int]) -> None:
        """Go on at that place."""
        self.close()
        self.pass_id, self.batch = saved["pass"], saved["batch"]
        self.given, self.examples = saved["given"], saved["examples"]


def place_of(pass_id: int, batch: int) -> str:
    """A place in the data, for a person to read."""
    return f"pass {pass_id}, batch {batch} (both from 0)"


def at_least(name: str, value: int, least: int) -> None:
    """Raise ValueError for what is no integer from ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")


def check_timeout(timeout: float | None, prefetch: int) -> None:
    """Raise ValueError for a timeout that is out of range, or that cannot be measured."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not 0 < timeout < threading.TIMEOUT_MAX:
        raise ValueError(f"timeout must be a number of seconds > 0, got {timeout!r}")
    if prefetch == 0:
        raise ValueError(
            "timeout= needs the background thread, prefetch >= 1: without it the run itself is inside the source, "
            "and cannot measure the time"
        )


def _refuse_of_stream(**given: bool) -> None:
    for name in (name for name, there in given.items() if there):
        remedy = "pass a list of it" + (", or shuffle_buffer=" if name == "shuffle" else "")
        raise DataError(f"{name}= needs a source with a length, and this one is a stream; {remedy}")


def _checked_weights(weights: Weights, size: int) -> NDArray[np.float64]:
    array = np.asarray(weights)
    if array.shape != (size,) or array.dtype.kind not in "iuf":
        got = f"{array.dtype} {list(array.shape)}"
        raise DataError(f"weights= must give one number for each of the {size} examples, got {got}")
    array = array.astype(np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all() and 0 < array.sum() < np.inf):
        raise DataError("weights= must be finite numbers >= 0, one of them above 0")
    return array


def _checked_lengths(lengths: Sequence[int] | NDArray[np.integer], size: int) -> NDArray[np.integer]:
    array = np.asarray(lengths)
    if array.shape != (size,) or array.dtype.kind not in "iu":
        got = f"{array.dtype} {list(array.shape)}"
        raise DataError(f"lengths= must give one integer for each of the {size} examples, got {got}")
    return array


def too_far(start: int, there: int) -> DataError:
    """The error of a pass that is to be entered behind its end."""
    what = f"cannot continue after batch {start} of this pass: it has {there} batches"
    return DataError(f"{what}; did the data or the batch_size change since the checkpoint?")
