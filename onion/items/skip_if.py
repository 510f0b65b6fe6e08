"""Batches that are skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import BEHIND_DATA, NETWORKS, Around
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_lazy


class SkipIf(RunnerItem):
    """Skip the inside for batches of which ``predicate(state)`` is true.

        SkipIf(lambda state: len(state.batch["x"]) < 8)

    A skipped batch does not count: ``state.step`` stays, and no period is completed by it. In a nested Runner only the
    rest of that Runner is skipped, and the batch counts as usual. A predicate that is never false again makes no more
    steps, so give such a run ``passes``.

    Args:
        predicate: a function of the state on the way in; its ``batch`` is the one to be skipped or not.

    Raises:
        CompositionError: ``predicate`` is no function, or a coroutine or generator function, which is always true; or
            it is outside the data, or there are networks, and none inside it.
    """

    keep_for_inference = False
    place_rules = (BEHIND_DATA, Around(NETWORKS, "keeps batches from the networks inside it"))

    def __init__(self, predicate: Callable[[State], object]) -> None:
        if is_lazy(predicate) or not callable(predicate):
            raise CompositionError(f"SkipIf: predicate must be a plain function of the state, got {predicate!r}.")
        self.predicate = predicate
        self.reset()

    def reset(self) -> None:
        """Count from 0."""
        self._skipped = 0

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside, or count."""
        if self.predicate(state):
            self._skipped += 1
        else:
            yield

    def log_values(self) -> dict[str, float]:
        """Return the number of skipped batches, resumed runs included."""
        return {"skipped": self._skipped}

    def state_dict(self) -> dict[str, Any]:
        """Return the count."""
        return {"skipped": self._skipped}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the count."""
        self._skipped = int(saved["skipped"])
