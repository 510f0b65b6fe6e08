"""A second network whose parameters are the moving average of the first one's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from onion.device import paddle
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.items.gradient_machine import load_network, saved_network, with_new_heads
from onion.items.parameter_updater import ParameterUpdater
from onion.training.pairing import moves

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class MovingAverage(RunnerItem):
    """Keep the exponential moving average of a network: after each update ``average += (1 - decay) * (now - average)``.

    Put it outside the ParameterUpdater. ``average`` is a separate network, in evaluation mode and without gradients,
    for tests of the average (Polyak and Juditsky 1992) and mean teachers (Tarvainen and Valpola 2017):

        smooth = MovingAverage(network)
        test = Runner(DataProvider(dev), Evaluator(Accuracy()), Forward(smooth.average))
        Runner(Tester(test), DataProvider(train), smooth, ParameterUpdater(optimizer), GradientMachine(network))

    Where a test needs the trained network itself, ``UseAverage`` lends it the averages.

    The average is updated in every batch that counts as a step; in a nested runner, whose rings leave before the batch
    counts, in every batch that reaches the item, so put an item that skips batches (SkipIf) outside it there.

    The average starts at the parameters of the network at the start of the first run, so it has no bias to correct.
    Floating-point buffers (BatchNorm's statistics) are averaged too, others (counters) are copied. A checkpoint has the
    averages by the paths of the network.

    Args:
        network: a ``paddle.nn.Layer`` in 32 bits or more: create this item before MixedPrecision casts it at O2.
        decay: how much of the average is kept at each update, in [0, 1). Default 0.999.

    Raises:
        CompositionError: ``decay`` is out of range, the network has 16-bit parameters, or no ParameterUpdater inside
            the item updates any of them.
    """

    keep_for_inference = False
    moves_weights = True

    def __init__(self, network: Any, decay: float = 0.999) -> None:
        if not 0 <= decay < 1:
            raise CompositionError(f"MovingAverage: decay must be in [0, 1), got {decay}.")
        _refuse_16_bits(network)
        self.network, self.decay = network, decay
        self.average: Any = deepcopy(network)
        self.average.eval()
        for parameter in self.average.parameters():
            parameter.stop_gradient = True
        self._pairs: list[tuple[Any, Any]] = []
        self._begun = False

    def check(self, runner: Runner) -> None:
        """Require a ParameterUpdater inside that updates the network."""
        updaters = [item for item in runner.inside(self) if isinstance(item, ParameterUpdater)]
        if not updaters:
            raise CompositionError(f"{self.name} has no ParameterUpdater inside it; move it further out, just outside.")
        if not any(moves(updater, self.network) for updater in updaters):
            names = ", ".join(updater.name for updater in updaters)
            raise CompositionError(
                f"{self.name} averages a network of which {names} updates no parameter; give both the same network."
            )

    def initialize(self, state: State) -> None:
        """Start at the network's parameters, unless there is an average already."""
        self._begin()

    def on_batch(self, state: State) -> HookIterator:
        """Update the average after the parameters, unless the batch was skipped and so does not count."""
        yield
        if state.step == state.next_step or self._is_nested(state):
            self._follow(1 - self.decay)

    def _is_nested(self, state: State) -> bool:
        """Return whether the item is in a nested runner, where the current batch does not count yet."""
        return state.runner is not None and all(item is not self for item in state.runner.items)

    def _begin(self) -> None:
        now, average = saved_network(self.network), saved_network(self.average)
        self._pairs = [(average[path], now[path]) for path in now]
        if not self._begun:
            self._follow(1.0)
            self._begun = True

    def _follow(self, share: float) -> None:
        """Move the average by this share towards the network; a share of 1 copies its bits."""
        with paddle().no_grad():
            for average, now in self._pairs:
                value = now.astype(average.dtype)
                if share < 1 and average.is_floating_point():
                    # A tensor, because for a number Paddle 3.3.1 makes one in each call and leaks part of it.
                    average.lerp_(value, paddle().full([], share, average.dtype))
                else:
                    average.set_value(value)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Set the network to the averages for the body; restore its own values, to the bit, on exit."""
        self._begin()
        own = [(now, now.clone()) for _, now in self._pairs]
        try:
            for average, now in self._pairs:
                now.set_value(average.astype(now.dtype))
            yield
        finally:
            for now, value in own:
                now.set_value(value)

    def state_dict(self) -> dict[str, Any]:
        """Return the averages by the paths of the network's parameters and buffers."""
        return saved_network(self.average)

    def extended(self, saved: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
        """Let the averages of new heads begin at their parameters."""
        return with_new_heads(self.network, saved, tasks)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the averages.

        Raises:
            CheckpointError: names or shapes differ from the network's; the averages are unchanged.
        """
        load_network(self.average, saved)
        self._begun = True


def _refuse_16_bits(network: Any) -> None:
    """Raise CompositionError for 16-bit parameters, where steps of a thousandth would be rounded away."""
    for path, parameter in network.named_parameters():
        if parameter.dtype in (paddle().float16, paddle().bfloat16):
            raise CompositionError(
                f"MovingAverage: {path} has 16 bits, too few for an average that changes in small steps; create "
                "the item while the network has 32, before it is cast."
            )
