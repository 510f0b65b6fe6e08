"""The pieces of a batch that several processes share: who reads which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen(eq=False)
class Piece:
    """A part of a batch.

    Attributes:
        number: its place in the batch, from 0.
        weight: its examples as a share of those of the whole batch. 0: the batch has fewer examples than pieces; what
            is in it then is the batch's first example, so that every process has something to run.
        batch: the part, made as a batch is.
    """

    number: int
    weight: float
    batch: Any


@attrs.frozen(eq=False)
class Pieces:
    """The pieces of a batch that this process has.

    Attributes:
        own: the pieces, in order.
        examples: the number of examples of the whole batch.
        crc32: of their numbers in the source, so that processes notice that they have drawn others; 0: of a stream.
    """

    own: tuple[Piece, ...]
    examples: int
    crc32: int = 0

    def each(self, change: Callable[[Any], Any]) -> Pieces:
        """Return the same pieces with other batches."""
        return attrs.evolve(self, own=tuple(attrs.evolve(piece, batch=change(piece.batch)) for piece in self.own))


@attrs.frozen
class Cut:
    """How batches are cut, and which of the pieces this process reads.

    Pieces are of equal size, but for one example more in the first ones where that does not come out even. What a piece
    holds does not depend on who reads it.

    Attributes:
        of: the number of pieces.
        first: the first piece of this process.
        count: the number of its pieces.
    """

    of: int
    first: int
    count: int

    def pieces(self, examples: Sequence[T], make: Callable[[list[T]], Any]) -> Pieces:
        """Return the pieces of this process.

        Args:
            examples: of the whole batch.
            make: makes a batch of examples.
        """
        own = (self._piece(number, examples, make) for number in range(self.first, self.first + self.count))
        return Pieces(tuple(own), len(examples))

    def _piece(self, number: int, examples: Sequence[T], make: Callable[[list[T]], Any]) -> Piece:
        size, more = divmod(len(examples), self.of)
        begin = number * size + min(number, more)
        part = list(examples[begin : begin + size + (number < more)])
        return Piece(number, len(part) / len(examples), make(part or list(examples[:1])))
