"""The ring that provides the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from onion.data.arguments import Length, Weights, at_least
from onion.data.batch_iterator import BatchIterator
from onion.data.batching import collate as stack
from onion.data.interruptible_wait import InterruptibleWait
from onion.data.loader import Loader
from onion.data.paddle_loader import PaddleBatches, is_data_loader
from onion.data.passes import Batches, Passes, place_of
from onion.data.source import say_where
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DataError

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class DataProvider(RunnerItem):
    """Put the batches of a pass on the state.

    The order depends on ``(seed, pass)`` alone, so a run that is resumed in the middle of a pass continues with the
    next batch.

    Args:
        source: a file (.tsv, .csv, .jsonl), a sequence, an iterable, a function that returns one, or a
            ``paddle.io.Dataset``; an ``onion.data.PassSource``, which has other examples in every pass; or a
            ``paddle.io.DataLoader``, which makes its own batches (see ``onion.data.paddle_loader``), so only ``seed``,
            ``prefetch`` and ``timeout`` may be given with it.
        batch_size: examples per batch. Default 32.
        tokens_per_batch: instead, the most tokens that the examples of a batch have together, padding not counted; it
            takes as many examples of similar length as fit, and all passes have as many batches. Needs ``lengths`` in
            tokens. See ``onion.data.Loader``. Default: none.
        shuffle: whether to shuffle in every pass. Default False.
        shuffle_buffer: examples of a stream that are held, of which a random one comes next. Default: none; a stream
            comes in its own order.
        weights: one number for each example: a pass draws as many examples as there are, with replacement, each in
            proportion to its weight; ``onion.data.balanced(labels)`` makes all labels equally likely.
        seed: of the random orders. Default 0.
        lengths: a function that returns the length of an example, or a sequence of all lengths: a batch then has
            examples of similar length, which need little padding. Default: the source's attribute ``lengths`` with
            ``tokens_per_batch``, else no buckets.
        collate: makes a batch of a list of examples. Default: stack arrays and numbers field by field.
        drop_last: whether to drop a last batch that is not full; with ``tokens_per_batch`` none is. Default False.
        prefetch: batches prepared in a background thread, which ends with the pass (but see ``wake``). Without it, for
            0 or a single batch, there is no thread. Default 2.
        timeout: seconds to wait for a batch before a DataError, which needs the thread. The first batch of a resumed
            stream takes the time of all those before it. Default: no limit, for data that arrive in real time.
        num_workers: processes that read and collate, for data that take time to compute; batches, their order and a
            resumed run are the same for any number. See ``onion.data.Loader``. Default 0: this process reads.

    Raises:
        DataError: the source is missing, broken or empty, or a DataLoader is given with its own settings; or, in the
            run, it yields nothing in time, its length changed or exceeds its examples, or a worker died.
        ValueError: an argument is out of range, or both ``batch_size`` and ``tokens_per_batch`` are given.
        CompositionError: another item of the onion provides data too.

    An error of the source or of ``collate`` is raised with its type and traceback. A note, in a DataError the message,
    names this item, the pass, the batch, and the example if it is known. The batch that failed is not counted, so a
    resumed run begins with it.
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
        tokens_per_batch: int | None = None,
        shuffle: bool = False,
        shuffle_buffer: int | None = None,
        weights: Weights | None = None,
        seed: int = 0,
        lengths: Length | None = None,
        collate: Callable[[list[Any]], Any] = stack,
        drop_last: bool = False,
        prefetch: int = 2,
        timeout: float | None = None,
        num_workers: int = 0,
    ) -> None:
        self.batch_size, self.shuffle, self.seed, self.drop_last = batch_size, shuffle, seed, drop_last
        self.tokens_per_batch, self.shuffle_buffer, self.num_workers = tokens_per_batch, shuffle_buffer, num_workers
        self.loader: Passes
        if is_data_loader(source):
            settings: dict[str, Any] = {"batch_size": batch_size, "tokens_per_batch": tokens_per_batch}
            settings |= {"lengths": lengths, "weights": weights}
            given = {name: value is not None for name, value in settings.items()}
            given |= {"shuffle": shuffle, "shuffle_buffer": shuffle_buffer is not None, "drop_last": drop_last}
            given |= {"collate": collate is not stack, "num_workers": num_workers != 0}
            for name in (name for name, own in given.items() if own):
                raise DataError(f"a DataLoader makes its own batches: pass {name}= to it instead of the DataProvider")
            self.loader = PaddleBatches(source, seed=seed, prefetch=prefetch, timeout=timeout)
        else:
            self.loader = Loader(
                source,
                batch_size,
                tokens_per_batch=tokens_per_batch,
                shuffle=shuffle,
                shuffle_buffer=shuffle_buffer,
                weights=weights,
                seed=seed,
                lengths=lengths,
                collate=collate,
                drop_last=drop_last,
                prefetch=prefetch,
                timeout=timeout,
                num_workers=num_workers,
            )
        self.reset()

    def reset(self) -> None:
        """Start with the first batch and no example handed out."""
        self._supply: BatchIterator | None = None
        self._batches: Batches | None = None
        self._start = self._skip = 0
        self._examples = 0

    @property
    def alone_because(self) -> str:  # type: ignore[override]
        """Refuse a DataLoader, whose batches come whole."""
        made = "a DataLoader makes whole batches, so each process would read all; give its dataset to a DataProvider"
        return made if isinstance(self.loader, PaddleBatches) else ""

    def check(self, runner: Runner) -> None:
        """Refuse another item that provides data."""
        refuse_other_data(self, runner)

    def on_pass(self, state: State) -> HookIterator:
        """Put the batches of the pass on the state; close them on the way out."""
        self._start, self._skip = self._skip, 0
        wait = InterruptibleWait()
        self.loader.cut = None if self.group is None else self.group.cut
        self._batches = self._of(state.pass_id, wait)
        where = partial(self._place, state.pass_id, self._batches)
        self._supply = BatchIterator(state, wait, self._batches, where)
        try:
            yield from drawn_together(self, state, self._supply, self._batches)
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
        """Return the place of the next batch in the data, for messages."""
        return f"{self.name}, {place_of(pass_id, self._start + (batches.given if batches else 0))}"

    def wake(self, state: State) -> None:
        """End the wait for the next batch, if this run waits and no batch has begun; see Signals.

        A thread that hangs in the source remains; it ends when the source returns, or with the process.

        Raises:
            Woken: in the wait, which ends like the batches of a pass.
        """
        if self._supply is not None:
            self._supply.wake(state)

    @property
    def batches_per_pass(self) -> int | None:
        """Number of batches in a pass; None for a stream."""
        return self.loader.batches_per_pass

    def identity(self) -> dict[str, Any]:
        """Return the settings of order and batches, and a fingerprint of the data."""
        return {**self.loader.settings, "data": self.loader.fingerprint}

    def log_values(self) -> dict[str, float]:
        """Return the number of examples handed out, including those before a resumption."""
        return {"examples": self._handed_out()}

    def _handed_out(self) -> int:
        return self._examples + (self._batches.examples if self._batches else 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of batches of the pass and of all examples that were handed out."""
        batch = self._start + self._batches.given if self._batches else self._skip
        return {"batch": batch, "examples": self._handed_out()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue there in the next pass that begins."""
        skip, examples = int(saved["batch"]), int(saved["examples"])
        at_least("batch", skip, 0)
        self._skip, self._examples, self._batches = skip, examples, None


def drawn_together(item: RunnerItem, state: State, batches: BatchIterator, provider: Any) -> HookIterator:
    """Put batches on the state, which several processes draw together if the item has a group; run the pass.

    Args:
        item: that provides them.
        state: of the run.
        batches: of the pass.
        provider: takes back the last batch (``put_back``).
    """
    if item.group is None:
        state.batches = batches
        yield
        return
    state.batches = boundary = item.group.together(state, batches, provider)
    yield
    boundary.leave()


def refuse_other_data(provider: RunnerItem, runner: Runner) -> None:
    """Raise CompositionError for another item that provides data."""
    for item in runner.walk():
        if item is not provider and item.provides_data:
            raise CompositionError(
                f"{provider.name}: {item.name} provides data too, and only the inner one would be read; remove one of "
                "them."
            )
