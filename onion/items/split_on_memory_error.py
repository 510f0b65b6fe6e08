"""Batches that do not fit into the memory are processed in pieces."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from onion.data import batch_parts
from onion.device import detached
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DataError
from onion.training.microbatches import (
    GradientRollback,
    Weight,
    check_inside_updater,
    refuse_evaluators,
    run_microbatches,
    weigh,
)
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.distributed.group import Group
    from onion.engine.runner import Runner

Split: TypeAlias = Callable[[Any, int], Sequence[Any]]
"""(batch, size) -> its pieces in order, of ``size`` examples each; the last one may have fewer."""

log = logging.getLogger("onion")

SIGNS = ("ResourceExhausted", "out of memory", "ALLOC_FAILED")


def is_memory_error(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out.

    Paddle 3 raises a MemoryError ("(ResourceExhausted) ...") for its own allocations on CPU and GPU. Older ones, and
    CUDA's libraries (CUBLAS_STATUS_ALLOC_FAILED), come as RuntimeError or OSError that only their text tells apart.
    """
    if isinstance(error, RuntimeError | OSError):
        return any(sign.lower() in str(error).lower() for sign in SIGNS)
    return isinstance(error, MemoryError)


class SplitOnMemoryError(RunnerItem):
    """When the memory runs out, halve the batch and try it again in pieces, until they fit; then remember their size.

        Runner(data, ParameterUpdater(optimizer), SplitOnMemoryError(network), GradientMachine(network))

    The pieces make one update, with the gradient of the whole batch (see ``Accumulate``), and nothing remains of the
    try that failed: not its gradients, its running means, its count or its memory. On the way out ``state.batch`` is
    the whole batch, ``state.outputs`` its outputs put together, ``state.loss`` its loss. An error with ``min_examples``
    examples left is raised as it came. Random numbers drawn in the failed try (dropout) stay drawn.

    Args:
        network: the network whose gradients a failed try leaves behind.
        split: cuts a batch: ``split(batch, size)`` gives its pieces of ``size`` examples, the last one may have fewer.
            Default: cut arrays, tensors and lists, which must all have the same length, and share anything else.
            Batches with flat index arrays (packed sequences) need a function of their own.
        min_examples: the fewest examples that a piece is cut down to. Default 1.
        weight: what a piece weighs in the loss's mean. Default: the number of its examples (see ``Accumulate``).

    Raises:
        CompositionError: ``min_examples`` is no number from 1, or its place is not between a ParameterUpdater
            and its gradient machines, or outside an Evaluator, which would see what is tried again twice.
        DataError: the first batch cannot be split.
    """

    splits_update = runs_again = True

    keep_for_inference = False
    transient = ("_tried",)  # it only spares a look at every batch

    def __init__(
        self,
        network: Any,
        split: Split = batch_parts.split,
        min_examples: int = 1,
        weight: Weight = batch_parts.examples,
    ) -> None:
        if not (is_whole(min_examples) and min_examples >= 1):
            raise CompositionError(f"SplitOnMemoryError: min_examples must be an integer >= 1, got {min_examples!r}.")
        self.network, self.split, self.min_examples, self.weight = network, split, min_examples, weight
        self.reset()

    def reset(self) -> None:
        """Begin without a remembered size."""
        self._fits: int | None = None
        self._fitted: list[int | None] = []
        self._tried = False

    def check(self, runner: Runner) -> None:
        """Require a place between an updater and its machines, and no Evaluator inside."""
        check_inside_updater(self, runner)
        refuse_evaluators(
            runner.inside(self), f"would see twice what {self.name} tries again; move it outside {self.name}."
        )

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside for the whole batch, or for its pieces; again for smaller ones when memory runs out."""
        batch, step, before = state.batch, state.step, self._fits
        self._try_splitting(batch)
        attempt, done = GradientRollback(self.network), False
        try:
            while not done:
                try:
                    yield from self._in_pieces(state, batch)
                    done = True
                except Exception as error:
                    if not (is_memory_error(error) and self._halve(batch)):
                        raise
                if not done:  # here, where the error is gone, and with it the memory that it held
                    attempt.take_back()
                    state.step, state.outputs, state.loss = step, None, None
        finally:
            state.batch = batch
        attempt.keep()
        if self.group is not None:
            self._fitted.append(self._fits)
            self._fits = before
            if self.group.is_last_piece:
                self._fits, self._fitted = self._smallest(state, self.group), []

    def _smallest(self, state: State, group: Group) -> int | None:
        """Return the smallest size that any part of the batch needed, on any rank, to begin the next batch with.

        Every part of this one has begun with the same size, so its sum does not depend on who computed it.
        """
        place = {"place": self.name, "pass": state.pass_id, "batch": state.batch_id, "task": state.task}
        told = group.everyone({"at": place, "fitted": self._fitted})
        group.refuse_out_of_step(told)
        return min((size for each in told for size in each["fitted"] if size is not None), default=None)

    def _in_pieces(self, state: State, batch: Any) -> HookIterator:
        parts = [batch] if self._fits is None else self.split(batch, self._fits)
        if len(parts) == 1:
            yield
            return
        outputs: list[Any] = []
        yield from run_microbatches(
            state,
            [(state.task, part) for part in parts],
            [weigh(part, self.weight) for part in parts],
            lambda state: outputs.append(detached(state.outputs)),
        )
        state.outputs = batch_parts.join(outputs)

    def _halve(self, batch: Any) -> bool:
        """Halve the size of the pieces; False: they are as small as they may be."""
        count = len(self.split(batch, 1))
        size = count if self._fits is None else min(self._fits, count)
        if size <= self.min_examples:
            return False
        self._fits = max(self.min_examples, (size + 1) // 2)
        log.warning(
            "%s: out of memory with %d examples; batches are split into parts of %d from now on",
            self.name,
            size,
            self._fits,
        )
        return True

    def _try_splitting(self, batch: Any) -> None:
        """Find a batch that cannot be split at the beginning of a run, and not when memory runs out."""
        if self._tried:
            return
        self._tried = True
        try:
            parts = self.split(batch, 1)
        except DataError as error:
            if self.split is not batch_parts.split:
                raise
            raise DataError(f"{error} Give {self.name} split=, a function of (batch, size).") from None
        weigh(parts[0], self.weight)

    def log_values(self) -> dict[str, float]:
        """Return the size of the pieces, once there are any."""
        return {} if self._fits is None else {"piece_size": self._fits}

    def state_dict(self) -> dict[str, Any]:
        """Return the size that fits."""
        return {"fits": self._fits}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore it."""
        self._fits = None if saved["fits"] is None else int(saved["fits"])
