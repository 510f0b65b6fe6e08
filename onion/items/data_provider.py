"""The ring that brings the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from onion.data.batch_iterator import BatchIterator
from onion.data.batching import collate as stack
from onion.data.interruptible_wait import InterruptibleWait
from onion.data.loader import Batches, Length, Loader, Passes, at_least, place_of
from onion.data.paddle_loader import PaddleBatches, is_data_loader
from onion.data.source import say_where
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DataError

if TYPE_CHECKING:
    from onion.engine.runner import Runner


BATCH_SIZE = 32
"""Examples a batch where nothing else is said."""


class DataProvider(RunnerItem):
    """Put the batches of a pass on the state.

    The order is a function of ``(seed, pass)`` alone, so a resumed run goes on in mid-pass with the batch that is due.

    Args:
        source: a file (.tsv, .csv, .jsonl), a sequence, an iterable, a function that returns one, or a
            ``paddle.io.Dataset``; or a ``paddle.io.DataLoader``, whose batches are taken as they are (see
            ``onion.data.paddle_loader``): it has its own batch size, order and collate, so of what follows only
            ``seed``, ``prefetch`` and ``timeout`` may be given.
        batch_size: examples a batch. Default 32.
        shuffle: shuffle anew every pass. Default False.
        seed: of the shuffling. Default 0.
        lengths: the length of an example (a function), or all lengths (a sequence): batches are then made of examples
            of similar length, which wastes little on padding. Default: no buckets.
        collate: makes a batch of a list of examples. Default: stack arrays and numbers field by field.
        drop_last: drop a last batch that is not full. Default False.
        prefetch: batches prepared ahead in a background thread, which never outlives the pass (but see ``wake``); 0: no
            thread, nor is there one for a lone batch. Default 2.
        timeout: seconds to wait for a batch at most; then it is a DataError. The first batch of a stream that is
            resumed takes the time of all those before it. It needs the thread. Default: as long as it takes, as data
            want that come as they arise.

    Raises:
        DataError: the source is missing, broken or empty, or a DataLoader is given with what it says itself; or, in the
            run, it gives nothing, has another length than it had, fewer examples than its length, or a worker died.
        ValueError: an argument is out of its range.
        CompositionError: another item of the onion brings data too.

    An error of the source or of ``collate`` comes out with its type and traceback. A note says where it came up: this
    item's name, pass, batch, and the example where it is known. A DataError has that in its message. What was handed
    out before is counted, and that batch is not: a run that is resumed begins with it.
    """

    provides_data = True
    # The place in the pass is start + given, and the examples are those before and those given; a resumed run has both
    # in other parts.
    transient = ("_batches", "_start", "_examples", "_supply")

    def __init__(
        self,
        source: Any,
        batch_size: int | None = None,
        *,
        shuffle: bool = False,
        seed: int = 0,
        lengths: Length | None = None,
        collate: Callable[[list[Any]], Any] = stack,
        drop_last: bool = False,
        prefetch: int = 2,
        timeout: float | None = None,
    ) -> None:
        self.batch_size, self.shuffle, self.seed, self.drop_last = batch_size, shuffle, seed, drop_last
        self.loader: Passes
        if is_data_loader(source):
            given = {"batch_size": batch_size is not None, "shuffle": shuffle, "drop_last": drop_last}
            _refuse_both({**given, "lengths": lengths is not None, "collate": collate is not stack})
            self.loader = PaddleBatches(source, seed=seed, prefetch=prefetch, timeout=timeout)
        else:
            self.loader = Loader(
                source,
                BATCH_SIZE if batch_size is None else batch_size,
                shuffle=shuffle,
                seed=seed,
                lengths=lengths,
                collate=collate,
                drop_last=drop_last,
                prefetch=prefetch,
                timeout=timeout,
            )
        self.reset()

    def reset(self) -> None:
        """Begin with the first batch, and with no example handed out."""
        self._supply: BatchIterator | None = None
        self._batches: Batches | None = None
        self._start = self._skip = 0
        self._examples = 0

    def check(self, runner: Runner) -> None:
        """Insist on being the only one to bring data."""
        refuse_other_data(self, runner)

    def on_pass(self, state: State) -> HookIterator:
        """Put the batches of this pass on the state; close them on the way out."""
        self._start, self._skip = self._skip, 0
        wait = InterruptibleWait()
        self._batches = self._of(state.pass_id, wait)
        where = partial(self._place, state.pass_id, self._batches)
        state.batches = self._supply = BatchIterator(state, wait, self._batches, where)
        try:
            yield
        finally:
            self._batches.close()
        if not state.pass_cut:
            self._examples += self._batches.examples
            self._batches = None

    def _of(self, pass_id: int, wait: InterruptibleWait) -> Batches:
        try:
            return self.loader.batches(pass_id, self._start, wait)
        except Exception as error:
            say_where(error, self._place(pass_id))
            raise

    def _place(self, pass_id: int, batches: Batches | None = None) -> str:
        """Return where in the data the next batch is."""
        return f"{self.name}, {place_of(pass_id, self._start + (batches.given if batches else 0))}"

    def wake(self, state: State) -> None:
        """End the wait for the next batch, if this is the run that waits and no batch is under way; see Signals.

        A thread that hangs in the source is left behind; it ends when the source comes back, or with the process.

        Raises:
            Woken: into the wait, which ends as the batches of a pass end.
        """
        if self._supply is not None:
            self._supply.wake(state)

    @property
    def batches_per_pass(self) -> int | None:
        """How many batches a pass has; None: a stream does not know."""
        return self.loader.batches_per_pass

    def identity(self) -> dict[str, Any]:
        """Return the settings of the order, how batches are made, and what tells these data from others."""
        return {**self.loader.settings, "data": self.loader.fingerprint}

    def log_values(self) -> dict[str, float]:
        """Return how many examples were handed out, resumed runs included."""
        return {"examples": self._handed_out()}

    def _handed_out(self) -> int:
        return self._examples + (self._batches.examples if self._batches else 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the pass, how many of its batches were handed out, and the examples so far."""
        batch = self._start + self._batches.given if self._batches else self._skip
        return {"batch": batch, "examples": self._handed_out()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue at that place in the next pass that begins."""
        skip, examples = int(saved["batch"]), int(saved["examples"])
        at_least("batch", skip, 0)
        self._skip, self._examples, self._batches = skip, examples, None


def _refuse_both(given: Mapping[str, bool]) -> None:
    """Raise DataError for what is said of the batches of a DataLoader, which says it itself."""
    for name, there in given.items():
        if there:
            raise DataError(f"a DataLoader makes its own batches: pass {name}= to it instead of the DataProvider")


def refuse_other_data(provider: RunnerItem, runner: Runner) -> None:
    """Raise CompositionError for another item that brings data: of two, only that further in would be read."""
    for item in runner.walk():
        if item is not provider and item.provides_data:
            raise CompositionError(
                f"{provider.name}: {item.name} provides data too, and only the inner one would be read; remove one "
                "of them out."
            )
