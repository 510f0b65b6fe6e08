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

    @property
    def numbers(self) -> range:
        """The pieces of this process."""
        return range(self.first, self.first + self.count)

    def of_rank(self, rank: int) -> Cut:
        """Return the cut as another process has it, each of which has as many pieces."""
        return Cut(self.of, rank * self.count, self.count)

    def pieces(
        self, examples: Sequence[T], make: Callable[[list[T]], Any], before: Callable[[int], None] = lambda number: None
    ) -> Pieces:
        """Return the pieces of this process.

        Args:
            examples: of the whole batch.
            make: makes a batch of examples.
            before: called with the number of each piece before it is made. Default: nothing.
        """
        return self.made(self.parts(examples), len(examples), make, before)

    def parts(self, examples: Sequence[T]) -> list[list[T]]:
        """Return the examples of each piece of this process; the batch's first one for a piece without any."""
        first = list(examples[:1])
        ends = [(self._begin(number, len(examples)), self._begin(number + 1, len(examples))) for number in self.numbers]
        return [list(examples[begin:end]) or first for begin, end in ends]

    def made(
        self,
        parts: Sequence[list[T]],
        examples: int,
        make: Callable[[list[T]], Any],
        before: Callable[[int], None] = lambda number: None,
    ) -> Pieces:
        """Return the pieces of this process, of their ``parts`` of a batch of so many examples; see ``pieces``."""
        own = []
        for number, part in zip(self.numbers, parts, strict=True):
            before(number)
            size = self._begin(number + 1, examples) - self._begin(number, examples)
            own.append(Piece(number, size / examples, make(part)))
        return Pieces(tuple(own), examples)

    def _begin(self, number: int, examples: int) -> int:
        size, more = divmod(examples, self.of)
        return number * size + min(number, more)
