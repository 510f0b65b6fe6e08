"""A ring that is there every n-th batch only."""

from __future__ import annotations

from fractions import Fraction

from onion.engine.conditional import Conditional
from onion.engine.item import RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_whole


class Every(Conditional):
    """Let an item's batch ring be there every ``n``-th batch; otherwise the inside runs without it.

        Runner(data, Runner(d_updater, d_machine), Every(5, Runner(g_updater, g_machine)))  # 5 critic steps to one

    It is the steps of the whole run that are counted (with n = 5: the 5th, the 10th, ...), so a resumed run goes on in
    the same beat. What else holds of the item: see ``onion.engine.conditional.Conditional``.

    Args:
        n: the period in batches, from 1.
        item: the item, or a Runner.

    Raises:
        CompositionError: ``n`` is no number from 1, or ``item`` is no item.
    """

    def __init__(self, n: int, item: RunnerItem) -> None:
        if not (is_whole(n) and n >= 1):
            raise CompositionError(f"Every: n must be an integer >= 1, got {n!r}.")
        super().__init__(item, f"Every({n}, ...)")
        self.n = n
        self.runs_a_step = Fraction(1, n)

    def is_active(self, state: State) -> bool:
        """Tell whether the batch under way completes a period."""
        return state.next_step % self.n == 0
