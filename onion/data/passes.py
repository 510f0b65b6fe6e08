"""The batches of a pass as they are handed out, and what gives those of every pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from onion.data.cut import Cut
from onion.data.interruptible_wait import InterruptibleWait
from onion.data.making import Counted
from onion.data.prefetch import Prefetcher
from onion.errors import DataError


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


def place_of(pass_id: int, batch: int) -> str:
    """A place in the data, for a person to read."""
    return f"pass {pass_id}, batch {batch} (both from 0)"


def too_far(start: int, there: int) -> DataError:
    """The error of a pass that is to be entered behind its end."""
    what = f"cannot continue after batch {start} of this pass: it has {there} batches"
    return DataError(f"{what}; did the data or the batch_size change since the checkpoint?")
