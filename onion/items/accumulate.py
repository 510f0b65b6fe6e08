"""Gradient accumulation: several batches for one update."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any

from onion.data import batch_parts
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import BEHIND_DATA
from onion.engine.state import State
from onion.errors import CompositionError, HookError
from onion.training.microbatches import (
    Part,
    Weight,
    check_inside_updater,
    refuse_evaluators,
    refuse_sharers_around,
    run_microbatches,
    weigh,
)
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class Accumulate(RunnerItem):
    """Make one update of ``k`` batches, with the gradient of one large batch of all their examples.

        Runner(data, ParameterUpdater(optimizer), Accumulate(8), GradientMachine(network))

    It takes ``k - 1`` more batches from the data and runs the inside once for each; ``state.share`` is its share of the
    update. ``state.step`` counts updates. On the way out ``state.loss`` is the weighted mean over the group, and
    ``state.batch`` and ``state.outputs`` are those of its last batch. The last group of a pass may be smaller.

    Rings between the data and this one see only the first batch of a group, so put items that alter batches (a masker)
    inside, and an Evaluator too.

    Args:
        k: number of batches, >= 1.
        weight: returns the weight of a batch, as the data item provided it, in the mean of the loss. Default: its
            number of examples, the length that all its arrays, tensors and lists have in common. For a mean over
            tokens: ``lambda batch: (batch["labels"] >= 0).sum()``.

    Raises:
        CompositionError: ``k`` is not an integer >= 1, the item is not between a ParameterUpdater and its gradient
            machines, or an Evaluator is outside it.
        HookError: a ring outside replaced the batch from the data; raised at the first one.
        DataError: the weight of a batch is not known.
    """

    keep_for_inference = False
    splits_update = runs_again = True
    place_rules = (BEHIND_DATA,)
    transient = ("_watched", "_place", "_parts")  # of the current batch alone

    def __init__(self, k: int, weight: Weight = batch_parts.examples) -> None:
        if not (is_whole(k) and k >= 1):
            raise CompositionError(f"Accumulate: k must be an integer >= 1, got {k!r}.")
        self.k, self.weight = k, weight
        self.extra_batches = k - 1
        self._watched = _Watched(iter(()))
        self._place: tuple[int, int] | None = None
        self._parts: list[Part] = []

    def check(self, runner: Runner) -> None:
        """Require a place between an updater and its machines, and no Evaluator outside."""
        check_inside_updater(self, runner)
        refuse_sharers_around(
            self, runner, "which makes one update of several batches already; swap them, or drop one."
        )
        outside = [item for item in runner.walk() if all(item is not each for each in runner.inside(self))]
        refuse_evaluators(outside, f"would see the last batch of every {self.k} only; move it inside {self.name}.")

    def on_pass(self, state: State) -> HookIterator:
        """Track the batches from the data; discard them on the way out."""
        if state.batches is not None:
            self._watched = _Watched(iter(state.batches))
            state.batches = self._watched
        try:
            yield
        finally:
            self._place, self._parts, self._watched = None, [], _Watched(iter(()))

    def on_batch(self, state: State) -> HookIterator:
        """Take the rest of the group and run the inside once for each of its batches."""
        place = (state.pass_id, state.batch_id)
        if place != self._place:  # else a ring outside retries or repeats the same batch
            self._refuse_altered(state)
            self._place, self._parts = place, self._drawn(state)
        yield from run_microbatches(state, self._parts, self._weights(state))

    def _weights(self, state: State) -> list[float]:
        """Return the weight of each batch; of one that several processes share, the sum over all of its pieces."""
        weigh_batch = partial(weigh, weight=self.weight)
        batches = [batch for _, batch in self._parts]
        return [*map(weigh_batch, batches)] if self.group is None else self.group.weights(state, batches, weigh_batch)

    def _drawn(self, state: State) -> list[Part]:
        """Take the rest of the group from the data; a TaskSampler sets the task with each batch."""
        more = islice(self._watched, self.k - 1)
        return [(state.task, state.batch), *((state.task, batch) for batch in more)]

    def _refuse_altered(self, state: State) -> None:
        if state.batch is not self._watched.last:
            raise HookError(
                f"an item outside {self.name} replaced the batch from the data, and would "
                f"do so for the first of every {self.k} only; move it inside {self.name}."
            )


class _Watched(Iterator[Any]):
    """The batches of a pass, and the last one that was taken."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self.last: Any = None

    def __next__(self) -> Any:
        self.last = next(self._batches)
        return self.last

    def __length_hint__(self) -> Any:
        hint = length_hint(self._batches, -1)
        return hint if hint >= 0 else NotImplemented  # a stream does not know
