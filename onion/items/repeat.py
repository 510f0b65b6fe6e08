"""The inside, several times a batch."""

from __future__ import annotations

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import NETWORKS, Around
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_whole


class Repeat(RunnerItem):
    """Run the inside ``n`` times for every batch; the batch counts once.

        Runner(data, Runner(Repeat(5), ParameterUpdater(critics), GradientMachine(critic)), ...)  # 5 critic steps

    Outside a ParameterUpdater it makes ``n`` updates of one batch, inside it one update of ``n`` gradients added up.

    Args:
        n: how often, from 1.

    Raises:
        CompositionError: ``n`` is no number from 1; or networks are there, and none inside it.
    """

    keep_for_inference = False
    runs_again = True
    place_rules = (Around(NETWORKS, "runs the networks inside it again"),)

    def __init__(self, n: int) -> None:
        if not (is_whole(n) and n >= 1):
            raise CompositionError(f"Repeat: n must be an integer >= 1, got {n!r}.")
        self.n = self.runs_a_step = n

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside, again and again."""
        for _ in range(self.n):
            yield
