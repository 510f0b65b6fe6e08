"""The planned batches of the passes of a run over several tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from onion.multitask.task_data import TaskData, plan


@attrs.frozen
class PassPlan:
    """The planned batches of each pass: by PALM's rule, or, where a strategy has stages, those of its stages.

    Attributes:
        tasks: by name.
        reference: the task whose passes count; None: the first target.
        stages: the batches of each task in each pass; None: PALM's rule.
    """

    tasks: Mapping[str, TaskData]
    reference: str | None
    stages: Sequence[Mapping[str, int]] | None

    def until(self, passes: int) -> dict[str, int]:
        """Return the batches of each task in so many passes, counted from the first."""
        if self.stages is None:
            return plan(self.tasks, self.reference, passes)
        return {name: sum(stage.get(name, 0) for stage in self.stages[:passes]) for name in self.tasks}

    def batches_in(self, pass_id: int) -> int:
        """Return the batches of one pass, counted from 0; 0 after the last stage."""
        if self.stages is None:
            return sum(self.until(1).values())
        return sum(self.stages[pass_id].values()) if 0 <= pass_id < len(self.stages) else 0

    @property
    def batches_per_pass(self) -> int | None:
        """The batches of every pass; None: stages differ in theirs."""
        sizes = {self.batches_in(stage) for stage in range(len(self.stages or "1"))}
        return sizes.pop() if len(sizes) == 1 else None

    def is_done(self, drawn: int) -> bool:
        """Return whether so many batches are all that there are; without stages there is no end."""
        return self.stages is not None and drawn >= sum(sum(stage.values()) for stage in self.stages)
