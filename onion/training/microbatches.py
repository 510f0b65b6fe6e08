"""One update made of several batches, each with its share of it: shared by Accumulate and SplitOnMemoryError."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias

from onion.data import batch_parts
from onion.device import detached
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DataError
from onion.items.evaluator import Evaluator
from onion.items.parameter_updater import ParameterUpdater
from onion.training.pairing import around, machines_inside

if TYPE_CHECKING:
    from onion.engine.runner import Runner

Weight: TypeAlias = Callable[[Any], SupportsFloat]
"""What a batch weighs in the mean that its loss is: the number of its examples, or of its tokens."""


Part: TypeAlias = tuple[str | None, Any]
"""A batch, after the task that it is of (``state.task``)."""


def run_microbatches(
    state: State, parts: Sequence[Part], weights: Sequence[float], look: Callable[[State], None] | None = None
) -> HookIterator:
    """Run the inside for each part (a task and its batch) with its share of the update; set the loss of the whole.

    ``weights`` are those of the parts (``weigh``).

    The mean over the whole is the weighted mean of the parts' means; so is its gradient. A part of weight 0 is left
    out, for its own mean would be undefined. ``look`` is called after each part.
    """
    whole, share, before, loss = sum(weights), state.share, state.loss, None
    told: list[float] = []
    try:
        for (task, batch), own in zip(parts, weights, strict=True):
            if own == 0:
                continue
            state.task, state.batch, state.share = task, batch, share * own / whole
            # Else, if an inner item skips the part, the loss of another part would be added.
            state.loss = state.weight = None
            yield
            loss = loss_sum(loss, state.loss, own / whole)
            told += [] if state.weight is None else [state.weight]
            if look is not None:
                look(state)
    finally:
        state.share = share
    state.loss = before if loss is None else loss
    state.weight = sum(told) if told else None


def weigh(batch: Any, weight: Weight) -> float:
    """Return the weight of a batch; DataError if it has none, or none that makes sense."""
    try:
        weighs = float(weight(batch))
    except DataError as error:
        if weight is not batch_parts.examples:
            raise
        raise DataError(f"{error} Give weight=, a function of the batch.") from None
    if not 0 <= weighs < float("inf"):
        raise DataError(f"weight= returned {weighs:g} for a batch; a weight must be >= 0.")
    return weighs


def loss_sum(sum_: Any, loss: Any, share: float = 1.0) -> Any:
    """Add a share of a loss, without reading it and without holding on to what it was computed from."""
    if loss is None:
        return sum_
    part = detached(loss) * share
    return part if sum_ is None else sum_ + part


def updaters_around(item: RunnerItem, runner: Runner) -> list[ParameterUpdater]:
    """Return the updaters around an item, the outermost first."""
    return [other for other in around(item, runner) if isinstance(other, ParameterUpdater)]


def check_inside_updater(item: RunnerItem, runner: Runner) -> None:
    """Raise CompositionError unless an item is between a ParameterUpdater and all its gradient machines."""
    updaters = updaters_around(item, runner)
    if not updaters:
        raise CompositionError(f"{item.name} is outside any ParameterUpdater; move it into one (after it).")
    machines = machines_inside(item, runner)
    for machine in machines_inside(updaters[-1], runner):
        if not any(machine is each for each in machines):
            raise CompositionError(
                f"{item.name} is inside {updaters[-1].name} and not outside {machine.name}; move it between the two."
            )


def refuse_sharers_around(item: RunnerItem, runner: Runner, why: str) -> None:
    """Raise CompositionError if an item is inside one that makes an update of several batches."""
    for other in around(item, runner):
        if other.splits_update:
            raise CompositionError(f"{item.name} is inside {other.name}, {why}")


def refuse_evaluators(items: Sequence[RunnerItem], why: str) -> None:
    """Raise CompositionError if there is an Evaluator among items."""
    for item in items:
        if isinstance(item, Evaluator):
            raise CompositionError(f"{item.name} {why}")


class GradientRollback:
    """One try at a batch with a network: it can be taken back, or kept.

    Gradients that were there before (of other batches of the same update) are set aside, so that those of the try can
    be thrown away alone. Buffers (running means) are copied. Where there is neither, this costs nothing.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        self._buffers = [(buffer, buffer.clone()) for buffer in network.buffers()]
        # A copy, because Paddle clears the very memory that a gradient handed out earlier shares.
        self._before = [(each, each.grad.detach().clone()) for each in network.parameters() if each.grad is not None]
        clear_gradients(parameter for parameter, _ in self._before)

    def take_back(self) -> None:
        """Throw away the gradients made since, and put the buffers back."""
        clear_gradients(self._network.parameters())
        for buffer, before in self._buffers:
            buffer.set_value(before)

    def keep(self) -> None:
        """Add the gradients that were set aside to those made since."""
        for parameter, before in self._before:
            parameter.grad = before if parameter.grad is None else parameter.grad + before
        self._before = []


def clear_gradients(parameters: Iterable[Any]) -> None:
    """Throw gradients away, so that there are none; zeros would still move a parameter, by momentum."""
    for parameter in parameters:
        parameter.clear_gradient(False)  # by position: Paddle overlooks set_to_zero=False and leaves zeros
