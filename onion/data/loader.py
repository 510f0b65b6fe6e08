"""`Loader`: from a data source to the batches of a pass; `InfiniteLoader`: pass after pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Real
from operator import length_hint
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onion.data import batching, order
from onion.data.interruptible_wait import InterruptibleWait
from onion.data.prefetch import Prefetcher
from onion.data.source import Indexed, Stream, as_source, fingerprint, say_where
from onion.errors import DataError

Counted = tuple[int, Any]
"""How many examples a batch has, and the batch."""

MAX_NAMED_EXAMPLES = 8
"""Examples of a batch that an error message names."""

Length = Callable[[Any], int] | Sequence[int] | NDArray[np.integer]
"""The length of an example by a function, or the lengths of all."""


class Loader:
    """Reads, orders and batches examples; one object serves every pass.

    The order of a pass depends on `seed` and the number of the pass only: entered in the middle it goes on exactly as
    it would have. The same holds for what is in the batches, as long as reading an example draws no random numbers from
    a global generator. Where it does, give ``prefetch=0``; otherwise the thread has drawn for batches not yet handed
    out.

    Args:
        source: A path, sequence, iterable, dataset or function; see `onion.data.source`.
        batch_size: Examples in a batch, from 1. Default 32.
        shuffle: Another random order in each pass. Needs a source with a length.
        seed: Of the random orders, any integer from 0. Default 0.
        lengths: Put examples of similar length into one batch: a function ``example -> int``, which reads every example
            once before the first pass, or one length an example. Needs a source with a length.
        collate: A function from a list of examples to a batch. Default `onion.data.collate`.
        drop_last: Leave out a last batch that is not full. Default: keep it.
        prefetch: Batches made ahead in a background thread; 0 means no thread, and a lone batch needs none. Default 2.
        timeout: Seconds to wait for a batch at most; then it is a DataError. The first batch of a stream that is
            resumed takes the time of all those before it. Needs the thread. Default: as long as it takes.

    Raises:
        DataError: The source cannot be read, is empty, or lacks the length that `shuffle` or `lengths` needs. While
            batches are drawn: it has another length than it had, fewer examples than its length, or gives nothing.
        ValueError: An argument is out of its range.

    What source and `collate` raise comes out as it is, with a note that says which examples it was about.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int = 32,
        *,
        shuffle: bool = False,
        seed: int = 0,
        lengths: Length | None = None,
        collate: Callable[[list[Any]], Any] = batching.collate,
        drop_last: bool = False,
        prefetch: int = 2,
        timeout: float | None = None,
    ) -> None:
        at_least("batch_size", batch_size, 1)
        at_least("seed", seed, 0)
        at_least("prefetch", prefetch, 0)
        check_timeout(timeout, prefetch)
        self.batch_size, self.shuffle, self.seed, self.drop_last = batch_size, shuffle, seed, drop_last
        self.prefetch, self.timeout = prefetch, timeout
        self._collate, self._length = collate, lengths
        self._lengths: NDArray[np.integer] | None = None
        self._source = as_source(source)
        if not isinstance(self._source, Stream):
            self._check_indexed(self._source)
        elif shuffle or lengths is not None:
            name = "shuffle" if shuffle else "lengths"
            raise DataError(f"{name}= needs a source with a length, and this one is a stream; pass a list of it")

    def _check_indexed(self, source: Indexed) -> None:
        self._size = len(source)
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
        own = {"by_length": True} if self._length is not None else {}
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
            start: Batches to skip. Skipped examples are not read, except those of a stream.
            wait: What may end the wait for a batch. Default: nothing.

        Raises:
            DataError: The pass is shorter, the source cannot give another pass, or its length has changed.
        """
        at_least("pass_id", pass_id, 0)
        at_least("start", start, 0)
        if isinstance(self._source, Stream):
            return self._batches(self._streamed(self._source.examples(), start), None, wait)
        self._refuse_other_size(self._source)
        plan = self._plan(self._source, pass_id)
        if start > len(plan):
            raise too_far(start, len(plan))
        return self._batches(self._indexed(self._source, plan[start:]), len(plan) - start, wait)

    def _batches(
        self, made: Generator[Counted, None, None], total: int | None, wait: InterruptibleWait | None
    ) -> Batches:
        lone = total is not None and total <= 1 and self.timeout is None  # it is there sooner than a thread
        ahead = Prefetcher(made, self.prefetch, timeout=self.timeout) if self.prefetch and not lone else made
        return Batches(ahead, total, wait or InterruptibleWait())

    def _refuse_other_size(self, source: Indexed) -> None:
        if len(source) != self._size:
            raise DataError(
                f"the data source has {len(source)} examples now, but had {self._size} at first; the order of "
                "a pass depends on that number: pass data that grows as a stream (a function that yields examples)"
            )

    def _plan(self, source: Indexed, pass_id: int) -> list[order.Indices]:
        """Which examples each batch of the pass has."""
        if callable(self._length) and self._lengths is None:
            lengths = [self._length(one) for i in range(self._size) for one in self._read(source, (i,))]
            self._lengths = _checked_lengths(lengths, self._size)
        if self._lengths is not None:
            return order.bucketed(
                self._lengths, self.batch_size, self.seed, pass_id, drop_last=self.drop_last, shuffle=self.shuffle
            )
        if self.shuffle:
            return order.cut(order.shuffled(self._size, self.seed, pass_id), self.batch_size, self.drop_last)
        return order.batches_in_order(self._size, self.batch_size, self.drop_last)

    def _indexed(self, source: Indexed, plan: list[order.Indices]) -> Generator[Counted, None, None]:
        for indices in plan:
            # Python's integers: a list takes them twice as fast as NumPy's, and a user's dataset expects them.
            wanted = indices.tolist()
            examples = self._read(source, wanted)
            yield len(examples), self._collated(examples, wanted)

    def _read(self, source: Indexed, wanted: Sequence[int]) -> list[Any]:
        """The examples of these numbers; an error says at which of them it came up."""
        left = iter(wanted)
        try:
            return [source[i] for i in left]
        except Exception as error:
            failed = wanted[-1 - length_hint(left)]
            if isinstance(error, IndexError) or (isinstance(error, KeyError) and error.args == (failed,)):
                raise DataError(
                    f"the data source has a length of {self._size} examples, but example {failed} (from 0) is "
                    f"missing: {type(error).__name__}: {error}"
                ) from error
            say_where(error, f"example {failed} (from 0)")
            raise

    def _collated(self, examples: list[Any], numbers: list[int]) -> Any:
        try:
            return self._collate(examples)
        except Exception as error:
            more = ["..."] if len(numbers) > MAX_NAMED_EXAMPLES else []
            named = ", ".join([*map(str, numbers[:MAX_NAMED_EXAMPLES]), *more])
            say_where(error, f"the batch of the examples {named} (from 0)")
            raise

    def _streamed(self, examples: Iterator[Any], start: int) -> Generator[Counted, None, None]:
        for done in range(start):
            if not list(islice(examples, self.batch_size)):
                raise too_far(start, done)
        while batch := list(islice(examples, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield len(batch), self._collate(batch)


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

    def __bool__(self) -> bool:
        return True  # as every iterator; without this, len() would decide

    def close(self) -> None:
        """End the pass here: no more batches come, and the background thread is gone. Harmless when called again."""
        if self._wait.asked and isinstance(self._made, Prefetcher):
            self._made.hurry()
        self._made.close()


class Passes(Protocol):
    """The batches of each pass; one object serves every pass."""

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
