"""One network's outputs become another one's input."""

from __future__ import annotations

from onion.engine.item import RunnerItem
from onion.engine.placement import BEHIND_DATA, NETWORKS, Around
from onion.engine.state import State
from onion.errors import CompositionError, HookError


class OutputsToBatch(RunnerItem):
    """Put the outputs that a network further out left into the batch, as a field for the networks further in.

        Runner(
            DataProvider(data),
            Forward(teacher), OutputsToBatch("teacher"),     # batch["teacher"] is what the teacher made of it
            ParameterUpdater(optimizer),
            GradientMachine(student, loss=distillation),     # loss(outputs, batch) sees it
        )

    The batch itself stays as it is; one with the field takes its place. A field of this name that the data had is
    replaced for what is further in.

    Args:
        field: its name in the batch, which is a dict.

    Raises:
        CompositionError: ``field`` is no name; or it is outside the data, or has no network inside it.
        HookError: the batch is no dict, or nothing has left outputs.
    """

    alters_batches = True
    keep_for_inference = False
    place_rules = (BEHIND_DATA, Around(NETWORKS, "puts a field into the batch for the networks inside it"))

    def __init__(self, field: str) -> None:
        if not isinstance(field, str) or not field:
            raise CompositionError(f"OutputsToBatch: field must be a name such as 'teacher', got {field!r}.")
        self.field = field

    def on_batch(self, state: State) -> None:
        """Put them there."""
        if state.outputs is None:
            raise HookError(f"{self.name}: there are no outputs; put a Forward of the other network just before it.")
        if not isinstance(state.batch, dict):
            raise HookError(
                f"{self.name}: the batch is a {type(state.batch).__name__}; only a dict can take the field "
                f"{self.field!r}."
            )
        state.batch = {**state.batch, self.field: state.outputs}
