"""`InfiniteLoader`: the batches of a loader, pass after pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onion.data.interruptible_wait import InterruptibleWait
from onion.data.passes import Batches, Passes, place_of
from onion.errors import DataError


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
