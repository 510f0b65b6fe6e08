"""A test with averaged parameters: swapped in around the pass, and out again whatever happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.items.saver import Saver

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.items.moving_average import MovingAverage


class UseAverage(RunnerItem):
    """Lend the network its moving averages for a pass of a test or inference onion.

        smooth = MovingAverage(network)
        test = Runner(DataProvider(dev), Evaluator(Accuracy()), UseAverage(smooth), Forward(network))
        Runner(Saver("out"), Tester(test), DataProvider(train), smooth, ParameterUpdater(optimizer), ...)

    After the pass, also after an error, the network has its own values again, to the bit; so a checkpoint of the
    training never holds borrowed ones. ``Forward(smooth.average)`` tests the same without lending; this item is for
    tests whose other items (a loss, a metric, a second network that shares the encoder) hold the trained network.

    Args:
        moving_average: the item that keeps the averages, in the training onion.

    Raises:
        CompositionError: it is in an onion that trains or saves, which would train or save the averages.
    """

    def __init__(self, moving_average: MovingAverage) -> None:
        self.moving_average = moving_average

    def check(self, runner: Runner) -> None:
        """Refuse an onion that trains or saves."""
        for item in runner.walk():
            if item.computes_gradients or isinstance(item, Saver):
                raise CompositionError(
                    f"{self.name} would apply its averages to {item.name} for the whole pass; it belongs in a test "
                    "runner: Tester(Runner(..., UseAverage(moving_average), Forward(network)))."
                )

    def on_pass(self, state: State) -> HookIterator:
        """Swap in, and out again."""
        with self.moving_average.applied():
            yield
