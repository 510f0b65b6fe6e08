"""`InfiniteLoader`: the batches of a loader, pass after pass, without an end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onion.data.interruptible_wait import InterruptibleWait
from onion.data.loader import Batches, Passes, place_of
from onion.errors import DataError


class InfiniteLoader(Iterator[Any]):
    """The batches of a loader; when it is through with a pass, it begins the next one.

    It may be closed at any time: that ends the loader's thread, and the next batch goes on where this one stopped. For
    this the source has to be one that can be read again.

    Args:
        loader: Gives the batches of each pass. Feeds may share one; each has its own place.

    Attributes:
        pass_id: The loader's pass, from 0.
        batch: How many batches of this pass were handed out.
        given: How many batches were handed out in all.
        examples: How many examples they had.
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
