"""`Loader`: from a data source to the batches of a pass."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onion.data import batching, making
from onion.data.arguments import (
    Length,
    Weights,
    at_least,
    check_timeout,
    checked_lengths,
    checked_weights,
    refuse_of_stream,
)
from onion.data.cut import Cut
from onion.data.interruptible_wait import InterruptibleWait
from onion.data.making import Counted
from onion.data.order_by_examples import ByExamples
from onion.data.order_by_tokens import InOrder, Shuffled, fitting
from onion.data.passes import Batches, too_far
from onion.data.prefetch import Prefetcher
from onion.data.source import Indexed, PassSource, Stream, as_source, examples_of_pass, fingerprint
from onion.data.stream_order import StreamOrder
from onion.data.workers import Workers
from onion.errors import DataError

BATCH_SIZE = 32
"""The default number of examples in a batch."""


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
        source: A path, sequence, iterable, dataset or function, or a `PassSource`, which has other examples in every
            pass; see `onion.data.source`.
        batch_size: Examples in a batch, from 1. Default 32.
        tokens_per_batch: Instead of ``batch_size``: the most tokens that the examples of a batch have together, padding
            not counted; a batch has as many examples as fit, of similar length. Every pass has the same number of
            batches. Needs a source with a length, and lengths in tokens, of which none is larger. With `shuffle` or
            `weights` see `onion.data.order_by_tokens.Shuffled`, else `onion.data.order_by_tokens.InOrder`. Default:
            none.
        shuffle: Another random order in each pass. Needs a source with a length.
        shuffle_buffer: How many examples of a stream are held, of which a random one comes next. Default: none; a
            stream comes in its own order.
        weights: One number for each example: a pass draws as many examples as there are, with replacement, each as
            often as its weight says (`onion.data.balanced` makes weights of labels). Needs a source with a length. With
            `tokens_per_batch` such numbers vary less from pass to pass than those of independent draws.
        seed: Of the random orders, any integer from 0. Default 0.
        lengths: Put examples of similar length into one batch: a function ``example -> int``, which reads every example
            once before the first pass (with `tokens_per_batch` at once), or one length an example, such as a mapped
            array. Needs a source with a length. Default: the source's attribute ``lengths`` with `tokens_per_batch`,
            else none.
        collate: A function from a list of examples to a batch. Default `onion.data.collate`.
        drop_last: Leave out a last batch that is not full; with `tokens_per_batch` nothing is left out. Default: keep
            it.
        prefetch: Batches made ahead in a background thread; 0 means no thread, and a lone batch needs none. Default 2.
        timeout: Seconds to wait for a batch at most; then it is a DataError. The first batch of a stream that is
            resumed takes the time of all those before it. Needs the thread. Default: as long as it takes.
        num_workers: Processes that make the batches: they read the examples of an indexed source and collate them; of a
            stream, which this process reads, they only collate. The batches, their order and a resumed pass are the
            same for any number. What is drawn from global generators meanwhile depends on seed, pass and batch; without
            workers on the generators of this process. Source and `collate` are pickled; see `onion.data.workers`.
            Default 0: this process does it all.

    Raises:
        DataError: The source cannot be read, is empty, or lacks the length that `shuffle`, `lengths`, `weights` or
            `tokens_per_batch` need; `weights` or `lengths` do not fit, or an example has more tokens than a batch; or
            `shuffle_buffer` is given for one that has a length. While batches are drawn: it has another length than it
            had, fewer examples than its length, or gives nothing; a worker died.
        ValueError: An argument is out of its range, or both `batch_size` and `tokens_per_batch` are given.

    Attributes:
        cut: The pieces of each batch that this process reads, of several that share the batches. None: whole batches.

    What source and `collate` raise comes out as it is, with a note that says which examples it was about.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int | None = None,
        *,
        tokens_per_batch: int | None = None,
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
        if batch_size is not None and tokens_per_batch is not None:
            raise ValueError("batch_size= counts examples and tokens_per_batch= tokens: give one of them, not both")
        for name, value in (("batch_size", batch_size), ("tokens_per_batch", tokens_per_batch)):
            at_least(name, 1 if value is None else value, 1)
        at_least("seed", seed, 0)
        at_least("prefetch", prefetch, 0)
        at_least("num_workers", num_workers, 0)
        at_least("shuffle_buffer", 1 if shuffle_buffer is None else shuffle_buffer, 1)
        check_timeout(timeout, prefetch)
        self.batch_size = BATCH_SIZE if batch_size is None and tokens_per_batch is None else batch_size
        self.tokens_per_batch, self.shuffle, self.seed, self.drop_last = tokens_per_batch, shuffle, seed, drop_last
        self.prefetch, self.timeout, self.num_workers = prefetch, timeout, num_workers
        self.shuffle_buffer = shuffle_buffer
        self.cut: Cut | None = None
        self._collate = collate
        self._source = as_source(source)
        self._weights: NDArray[np.float64] | None = None
        self._order: ByExamples | Shuffled | InOrder | StreamOrder
        if isinstance(self._source, Stream):
            self._order = self._of_stream(weights, lengths)
        else:
            self._order = self._of_indexed(self._source, weights, lengths)

    # -- the order ----------------------------------------------------------------------------------------------------

    def _of_stream(self, weights: Weights | None, lengths: Length | None) -> StreamOrder:
        needing = {"lengths": lengths, "weights": weights, "tokens_per_batch": self.tokens_per_batch}
        refuse_of_stream(shuffle=self.shuffle, **{name: given is not None for name, given in needing.items()})
        assert self.batch_size is not None
        return StreamOrder(self.batch_size, self.seed, self.drop_last, self.shuffle_buffer)

    def _of_indexed(
        self, source: Indexed | PassSource, weights: Weights | None, lengths: Length | None
    ) -> ByExamples | Shuffled | InOrder:
        if self.shuffle_buffer is not None:
            raise DataError("shuffle_buffer= is for a stream; this source has a length, so shuffle=True shuffles all")
        if lengths is None and self.tokens_per_batch is not None:
            lengths = getattr(source, "lengths", None)
        if isinstance(source, PassSource) and callable(lengths):
            raise DataError(
                "lengths= is a function, but the source has other examples in every pass (of_pass): pass the most "
                "that each may have, as an array"
            )
        self._size = len(source)
        if weights is not None:
            self._weights = checked_weights(weights, self._size)
        if self.tokens_per_batch is not None:
            return self._by_tokens(source, self.tokens_per_batch, lengths)
        assert self.batch_size is not None
        measured = partial(self._lengths, source, lengths) if callable(lengths) else None
        known = None if lengths is None or measured else self._lengths(source, lengths)
        return ByExamples(
            self._size, self.batch_size, self.seed, self.shuffle, self.drop_last, self._weights, known, measured
        )

    def _by_tokens(self, source: Indexed | PassSource, tokens: int, lengths: Length | None) -> Shuffled | InOrder:
        if lengths is None:
            raise DataError(
                "tokens_per_batch= needs to know how many tokens each example has: pass lengths=, or a source that has "
                "an attribute of that name"
            )
        counted = fitting(self._lengths(source, lengths), tokens)
        if self.shuffle or self._weights is not None:
            return Shuffled(counted, tokens, self.seed, self._weights)
        return InOrder(counted, tokens)

    def _lengths(self, source: Indexed | PassSource, lengths: Length) -> NDArray[np.integer]:
        """The length of every example, which are read if need be."""
        if not callable(lengths):
            return checked_lengths(lengths, self._size)
        assert not isinstance(source, PassSource)
        read = making.FromNumbers(source, self._collate).read
        return checked_lengths([lengths(one) for i in range(self._size) for one in read((i,))], self._size)

    # -- what it tells of itself --------------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str | None:
        """What tells its data from others; see `onion.data.source.fingerprint`."""
        return fingerprint(self._source)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the order; and how batches are made, as far as that is not by default."""
        own = {name: getattr(self, name) for name in ("shuffle", "seed", "drop_last")}
        if self._weights is not None:
            own["weights"] = f"crc32 {zlib.crc32(self._weights.tobytes()):08x}"
        made = {} if self._collate is batching.collate else {"collate": self._collate}
        return {**self._order.settings, **own, **made}

    @property
    def batches_per_pass(self) -> int | None:
        """How many batches a pass has; None where only reading the source to its end would tell."""
        return None if isinstance(self._order, StreamOrder) else len(self._order)

    # -- a pass -------------------------------------------------------------------------------------------------------

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
        work = self._work(pass_id, start)
        made, wake = self._made(work, pass_id, start)
        lone = work.total is not None and work.total <= 1 and self.timeout is None  # it is there sooner than a thread
        ahead = Prefetcher(made, self.prefetch, timeout=self.timeout, wake=wake) if self.prefetch and not lone else made
        return Batches(ahead, work.total, wait or InterruptibleWait())

    def _work(self, pass_id: int, start: int) -> Work:
        source, order = self._source, self._order
        if isinstance(order, StreamOrder):
            assert isinstance(source, Stream)
            return Work(making.FromExamples(self._collate), order.lists(source, pass_id, start, self.cut), None)
        assert not isinstance(source, Stream)
        self._refuse_other_size(source)
        examples = examples_of_pass(source, pass_id)
        self._refuse_other_size(examples)
        if start > len(order):
            raise too_far(start, len(order))
        # Python's integers: a list takes them twice as fast as NumPy's, and a user's dataset expects them.
        numbers = (indices.tolist() for indices in order.batches(pass_id, start))
        return Work(making.FromNumbers(examples, self._collate), numbers, len(order) - start)

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

    def _refuse_other_size(self, source: Indexed | PassSource) -> None:
        if len(source) != self._size:
            raise DataError(
                f"the data source has {len(source)} examples now, but had {self._size} at first; the order of "
                "a pass depends on that number: pass data that grows as a stream (a function that yields examples)"
            )
