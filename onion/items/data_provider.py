"""The ring that brings the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onion.data.batching import collate as stack
from onion.data.loader import Batches, Loader
from onion.errors import CompositionError
from onion.item import RunnerItem, Way
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner


class DataProvider(RunnerItem):
    """Put the batches of a pass on the state.

    The order is a function of ``(seed, pass)`` alone, so a resumed run goes on in mid-pass with the batch that is due.

    Args:
        source: a file (.tsv, .csv, .jsonl), a sequence, an iterable, a function that returns one, or a
            ``paddle.io.Dataset``.
        batch_size: examples a batch. Default 32.
        shuffle: shuffle anew every pass. Default False.
        seed: of the shuffling. Default 0.
        length: the length of an example (a function), or all lengths (a sequence): batches are then made of examples of
            similar length, which wastes little on padding. Default: no buckets.
        collate: makes a batch of a list of examples. Default: stack arrays and numbers field by field.
        drop_last: drop a last batch that is not full. Default False.
        prefetch: batches prepared ahead in a background thread, which never outlives the pass; 0: no thread. Default 2.

    Raises:
        DataError: the source is missing, broken or empty.
        CompositionError: another item of the onion brings data too.
    """

    brings_data = True

    def __init__(
        self,
        source: Any,
        batch_size: int = 32,
        *,
        shuffle: bool = False,
        seed: int = 0,
        length: Callable[[Any], int] | Sequence[int] | None = None,
        collate: Callable[[list[Any]], Any] = stack,
        drop_last: bool = False,
        prefetch: int = 2,
    ) -> None:
        self.batch_size, self.shuffle, self.seed, self.drop_last = batch_size, shuffle, seed, drop_last
        self.loader = Loader(
            source,
            batch_size,
            shuffle=shuffle,
            seed=seed,
            length=length,
            collate=collate,
            drop_last=drop_last,
            prefetch=prefetch,
        )
        self._batches: Batches | None = None
        self._start = self._skip = 0
        self._examples = 0
        self._under_way = False

    def check(self, runner: Runner) -> None:
        """Insist on being the only one to bring data."""
        refuse_other_data(self, runner)

    def on_pass(self, state: State) -> Way:
        """Put the batches of this pass on the state; close them on the way out."""
        with self._alone():
            self._start, self._skip = self._skip, 0
            self._batches = self.loader.batches(state.pass_id, self._start)
            state.batches = self._batches
            try:
                yield
            finally:
                self._batches.close()
            if not state.pass_cut:
                self._examples += self._batches.examples
                self._batches = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Set the place aside of a run around this one that shares the item, as a test made of the training does."""
        around = (self._batches, self._start, self._examples) if self._under_way else None
        self._under_way = True
        try:
            yield
        finally:
            self._under_way = around is not None
            if around is not None:
                self._batches, self._start, self._examples = around

    def readings(self) -> dict[str, float]:
        """Return how many examples were handed out, resumed runs included."""
        return {"examples": self._handed_out()}

    def _handed_out(self) -> int:
        return self._examples + (self._batches.examples if self._batches else 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the pass, how many of its batches were handed out, and the examples so far."""
        batch = self._start + self._batches.given if self._batches else self._skip
        return {"batch": batch, "examples": self._handed_out()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on at that place in the next pass to be begun."""
        self._skip, self._examples, self._batches = int(saved["batch"]), int(saved["examples"]), None


def refuse_other_data(provider: RunnerItem, runner: Runner) -> None:
    """Raise CompositionError for another item that brings data: of two, only that further in would be read."""
    for item in runner.walk():
        if item is not provider and getattr(item, "brings_data", False):
            raise CompositionError(
                f"{provider.name}: {item.name} brings data too, and only the one further in would be read; leave one "
                "of them out."
            )
