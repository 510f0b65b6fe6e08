"""The ring by which a student gets its teacher's logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from onion import HookIterator, RunnerItem, State
from onion.engine.placement import BEHIND_DATA
from onion.tasks.networks.distillation import TEACHER
from onion.tasks.students.kept_logits import KeptLogits


class TeacherLogits(RunnerItem):
    """Put the teacher's logits of a batch's examples into it, as ``batch["teacher"]``: float32 [batch, classes].

    They are computed before the first batch, as far as their folder does not have them yet.

    Args:
        logits: where they are kept, and how they are computed.
        quiet: whether no progress is shown meanwhile. Default False.
    """

    alters_batches = True
    keep_for_inference = False
    place_rules = (BEHIND_DATA,)
    alone_because = "one teacher labels all examples"
    transient = ("quiet", "_rows")

    def __init__(self, logits: KeptLogits, quiet: bool = False) -> None:
        self.logits, self.quiet = logits, quiet
        self._rows: np.ndarray | None = None

    def initialize(self, state: State) -> HookIterator:
        """Compute what is missing, and map the rest; a run that is stopped meanwhile ends before its first batch."""
        self._rows = self.logits.complete(self.quiet, lambda: state.stopped is not None)
        yield
        self._rows = None

    def on_batch(self, state: State) -> None:
        """Put them there."""
        assert self._rows is not None
        state.batch = {**state.batch, TEACHER: np.array(self._rows[state.batch["places"]])}

    def identity(self) -> dict[str, Any]:
        """The teacher and the examples, wherever their logits are kept."""
        return {"logits": self.logits.digest}
