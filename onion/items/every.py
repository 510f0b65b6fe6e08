"""A ring that takes part in every n-th batch only."""

from __future__ import annotations

from fractions import Fraction

from onion.engine.conditional import Conditional
from onion.engine.item import RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_whole


class Every(Conditional):
    """Run an item's batch ring in every ``n``-th batch; in the others the inside runs without it.

        Runner(data, Runner(d_updater, d_machine), Every(5, Runner(g_updater, g_machine)))  # 5 critic steps to one

    The steps of the whole run are counted (with n = 5: the 5th, the 10th, ...), so a resumed run keeps the period. See
    ``onion.engine.conditional.Conditional`` for what else applies to the item.

    Args:
        n: the period in batches, >= 1.
        item: the item, or a Runner.

    Raises:
        CompositionError: ``n`` is not an integer >= 1, or ``item`` is not an item.
    """

    def __init__(self, n: int, item: RunnerItem) -> None:
        if not (is_whole(n) and n >= 1):
            raise CompositionError(f"Every: n must be an integer >= 1, got {n!r}.")
        super().__init__(item, f"Every({n}, ...)")
        self.n = n
        self.runs_a_step = Fraction(1, n)

    def is_active(self, state: State) -> bool:
        """Return whether the current batch completes a period."""
        return state.next_step % self.n == 0
