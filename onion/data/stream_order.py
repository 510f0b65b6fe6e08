"""Batches of a stream: which examples each of a pass has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import attrs

from onion.data import order
from onion.data.cut import Cut
from onion.data.passes import too_far
from onion.data.source import Stream


@attrs.frozen(eq=False)
class StreamOrder:
    """The examples of each batch of a stream.

    Attributes:
        batch_size: of a batch, from 1.
        seed: of the random orders.
        drop_last: whether a last batch that is not full is left out.
        shuffle_buffer: how many examples are held, of which a random one comes next. None: they come as they are.
    """

    batch_size: int
    seed: int
    drop_last: bool
    shuffle_buffer: int | None

    @property
    def settings(self) -> dict[str, Any]:
        """What the order depends on besides `seed` and `drop_last`."""
        buffer = {} if self.shuffle_buffer is None else {"shuffle_buffer": self.shuffle_buffer}
        return {"batch_size": self.batch_size, **buffer}

    def lists(self, source: Stream, pass_id: int, start: int, cut: Cut | None) -> Iterator[list[Any]]:
        """Give the examples of each batch, from batch ``start`` on.

        Those of the first batches are dropped. They are not made if the source can skip them, and neither are those in
        the pieces of other processes, in whose places there is anything then.

        Raises:
            DataError: the pass is shorter.
        """
        shared = cut is not None and cut.count < cut.of
        if source.size is not None and (start or shared):
            examples = source.skipping(self._skipped(source.size, pass_id, start, cut))
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

    def _skipped(self, size: int, pass_id: int, start: int, cut: Cut | None) -> bytearray:
        """For each example of a stream 1 if this process does not need it in a pass that it enters there, or 0."""
        skipped = bytearray(size)
        places = self._streamed(range(size), pass_id)
        for place in islice(places, start * self.batch_size):
            skipped[place] = True
        if cut is not None:
            while batch := list(islice(places, self.batch_size)):
                for place in batch:
                    skipped[place] = True
                for place in chain.from_iterable(cut.parts(batch)):
                    skipped[place] = False
        return skipped

    def _streamed(self, examples: Iterable[Any], pass_id: int) -> Iterator[Any]:
        """A stream in the order in which a pass sees it."""
        if self.shuffle_buffer is None:
            return iter(examples)
        return order.buffered(examples, self.shuffle_buffer, self.seed, pass_id)
