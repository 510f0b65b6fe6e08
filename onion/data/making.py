"""One batch of a pass: from the numbers of its examples, or the examples themselves, to the batch.

What makes a batch is a plain object that can be pickled, so that a worker process (`onion.data.workers`) may have it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from operator import length_hint
from typing import Any, TypeVar
from zlib import crc32

import attrs

from onion.checkpointing import rng
from onion.data.cut import Cut
from onion.data.source import Indexed, say_where
from onion.data.worker_process import seed_generators
from onion.errors import DataError

Counted = tuple[int, Any]
"""How many examples a batch has, and the batch."""

MAX_NAMED_EXAMPLES = 8
"""Examples of a batch that an error message names."""

Given = TypeVar("Given")


class FromNumbers:
    """Read examples of an indexed source and make a batch of them.

    Args:
        source: Of the examples.
        collate: A list of examples -> a batch.
    """

    def __init__(self, source: Indexed, collate: Callable[[list[Any]], Any]) -> None:
        self._source, self._collate, self._size = source, collate, len(source)

    def __call__(self, numbers: Sequence[int]) -> Counted:
        """The batch of the examples of these numbers; an error says at which of them it came up."""
        examples = self.read(numbers)
        try:
            return len(examples), self._collate(examples)
        except Exception as error:
            more = ["..."] if len(numbers) > MAX_NAMED_EXAMPLES else []
            named = ", ".join([*map(str, numbers[:MAX_NAMED_EXAMPLES]), *more])
            say_where(error, f"the batch of the examples {named} (from 0)")
            raise

    def read(self, numbers: Sequence[int]) -> list[Any]:
        """The examples of these numbers."""
        source, left = self._source, iter(numbers)
        try:
            return [source[i] for i in left]
        except Exception as error:
            failed = numbers[-1 - length_hint(left)]
            if isinstance(error, IndexError) or (isinstance(error, KeyError) and error.args == (failed,)):
                raise DataError(
                    f"the data source has a length of {self._size} examples, but example {failed} (from 0) is "
                    f"missing: {type(error).__name__}: {error}"
                ) from error
            say_where(error, f"example {failed} (from 0)")
            raise


class FromExamples:
    """Make a batch of examples that have been read already."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self._collate = collate

    def __call__(self, examples: list[Any]) -> Counted:
        """The batch of these examples."""
        return len(examples), self._collate(examples)


class InPieces:
    """Make the pieces of a batch that this process has, instead of the whole batch."""

    def __init__(self, make: Callable[[Any], Counted], cut: Cut) -> None:
        self._make, self._cut = make, cut

    def __call__(self, given: Sequence[Any], before: Callable[[int], None] = lambda number: None) -> Counted:
        """The pieces of the batch of these; ``before`` is called with the number of each before it is made."""
        pieces = self._cut.pieces(given, lambda part: self._make(part)[1], before)
        drawn = crc32(array("q", given)) if isinstance(self._make, FromNumbers) else 0
        return len(given), attrs.evolve(pieces, crc32=drawn)


class Seeded:
    """Make the batches of a pass in a worker: the global generators begin each batch where seed, pass and batch say.

    So whatever is drawn while a batch is made does not depend on the worker, on their number, or on earlier batches;
    and where batches are made in pieces, each of which begins anew, not on who makes the other pieces.
    """

    def __init__(self, make: Callable[[Any], Counted], seed: int, pass_id: int) -> None:
        self._make, self._seed, self._pass_id = make, seed, pass_id

    def __call__(self, numbered: tuple[int, Any]) -> Counted:
        """The batch of that number in the pass, of what it is made of."""
        batch, given = numbered
        if isinstance(self._make, InPieces):
            return self._make(given, lambda piece: seed_generators(self._seed, self._pass_id, batch, piece))
        seed_generators(self._seed, self._pass_id, batch)
        return self._make(given)


class SeededHere(Seeded):
    """Make them in the process of the run, whose generators are put back after each batch."""

    def __call__(self, numbered: tuple[int, Any]) -> Counted:
        """The batch of that number in the pass, of what it is made of."""
        kept = rng.capture()
        try:
            return super().__call__(numbered)
        finally:
            rng.restore(kept)
