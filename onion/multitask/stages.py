"""The strategy of continual training: tasks that come in one after the other, each with an exact number of batches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from onion.data.order import interleaved
from onion.errors import CompositionError
from onion.multitask.strategies import Strategy, TaskInfo
from onion.validation import is_count, is_whole

__all__ = ["Stages"]


class Stages(Strategy):
    """Train in stages, in which each task has an exact number of batches; a pass of the TaskSampler is a stage.

    This is the continual multi-task learning of ERNIE 2.0 (Sun et al. 2020, arXiv:1907.12412): task number
    ``s`` comes in at stage ``s`` and is trained with all those before it, so that they are not forgotten. Of its
    batches it has ``keep`` in every later stage, and the others in its first.

        TaskSampler(tasks, Stages({"mask": 50_000, "capital": 50_000, "document": 50_000}, keep=10_000))

        stage     1      2      3
        mask      30000  10000  10000
        capital          40000  10000
        document                50000

    Within a stage the batches come in a random order. The paper leaves that order open; here it depends on the seed,
    the stage and its counts alone, so a run that is resumed anywhere goes on with the same tasks. The run ends after
    the last stage.

    Args:
        batches: task -> its batches in all stages, in the order in which the tasks come in.
        keep: batches of a task in each stage after its first. With 0 one task comes after the other.
        seed: of the order within the stages. Default 0.

    Attributes:
        table: the batches of each task in each stage; a task that has none is left out.
        total: batches of all tasks in all stages; learning rate schedules take it as ``total_steps``.

    Raises:
        CompositionError: a number is not an integer or too small; a stage has no batch; or, when the runner is built,
            the TaskSampler has other tasks, or settings that have no meaning in stages.
    """

    def __init__(self, batches: Mapping[str, int], keep: int, *, seed: int = 0) -> None:
        _refuse_no_counts(batches)
        if not is_count(keep):
            raise CompositionError(f"Stages: keep must be a number of batches >= 0, got {keep!r}.")
        self._set(_by_rule(batches, keep), seed)

    @classmethod
    def of_table(cls, table: Sequence[Mapping[str, int]], *, seed: int = 0) -> Stages:
        """Return the strategy of any table of batches.

        Args:
            table: one mapping a stage, task -> its batches; a task that is left out, or has 0, is not drawn.
            seed: as of the class.
        """
        stages = object.__new__(cls)
        stages._set(table, seed)
        return stages

    @classmethod
    def together(cls, batches: Mapping[str, int], *, seed: int = 0) -> Stages:
        """Return the strategy that trains all tasks in a single stage; the arguments are those of the class."""
        _refuse_no_counts(batches)
        return cls.of_table([batches], seed=seed)

    @classmethod
    def one_by_one(cls, batches: Mapping[str, int], *, seed: int = 0) -> Stages:
        """Return the strategy that trains one task after the other; the arguments are those of the class."""
        return cls(batches, 0, seed=seed)

    def _set(self, table: Sequence[Mapping[str, int]], seed: int) -> None:
        if not isinstance(table, Sequence) or not table:
            raise CompositionError("Stages: the table must be a list of stages, [{'name': batches, ...}, ...].")
        for stage, row in enumerate(table, start=1):
            _refuse_row(row, stage)
        if not is_whole(seed) or seed < 0:
            raise CompositionError(f"Stages: seed must be an integer >= 0, got {seed!r}.")
        self.seed = seed
        self.table = tuple({name: int(count) for name, count in row.items() if count} for row in table)
        self.stages = self.table
        self._ends = [*accumulate(sum(row.values()) for row in self.table)]
        self._order: tuple[int, list[str]] = (-1, [])

    @property
    def total(self) -> int:
        """Batches of all tasks in all stages."""
        return self._ends[-1]

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Require batches for every task, and for no other."""
        named = {name: None for row in self.table for name in row}
        for name in named:
            if name not in tasks:
                raise CompositionError(
                    f"Stages has batches of the task {name!r}, which the sampler does not have; it has "
                    f"{', '.join(tasks)}."
                )
        for name in tasks:
            if name not in named:
                raise CompositionError(
                    f"Stages has no batch of the task {name!r}, which would never be drawn; give it some, or leave the "
                    "task out."
                )

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return the task of the step."""
        stage = bisect_right(self._ends, step)
        begin = self._ends[stage - 1] if stage else 0
        if self._order[0] != stage:
            self._order = (stage, self._order_of(stage))
        return {self._order[1][step - begin]: 1.0}

    def _order_of(self, stage: int) -> list[str]:
        """Return the task of each batch of a stage; the order of the tasks in the table makes no difference."""
        names = sorted(self.table[stage])
        counts = [self.table[stage][name] for name in names]
        return [names[number] for number in interleaved(counts, self.seed, stage)]

    def readings(self, drawn: Mapping[str, int]) -> dict[str, float]:
        """Return the stage, from 1, and of each task the batches done and planned in all stages."""
        stage = min(bisect_left(self._ends, sum(drawn.values())), len(self.table) - 1)
        planned = {name: sum(row.get(name, 0) for row in self.table) for name in drawn}
        return {
            "stage": stage + 1,
            **{f"done.{name}": count for name, count in drawn.items()},
            **{f"planned.{name}": count for name, count in planned.items()},
        }


def _by_rule(batches: Mapping[str, int], keep: int) -> list[dict[str, int]]:
    """Return the table in which each task has ``keep`` batches in each stage after its first."""
    table: list[dict[str, int]] = [{} for _ in batches]
    for first, (name, count) in enumerate(batches.items()):
        later = len(table) - first - 1
        if not is_count(count) or count <= keep * later:
            raise CompositionError(
                f"Stages: the task {name!r} has {count!r} batches, but {keep} in each of {later} later stages leave "
                f"none for its first; give it an integer above {keep * later}, or keep fewer."
            )
        table[first][name] = count - keep * later
        for stage in range(first + 1, len(table)):
            table[stage][name] = keep
    return table


def _refuse_no_counts(batches: Any) -> None:
    if not isinstance(batches, Mapping) or not batches:
        raise CompositionError(f"Stages takes batches by task, {{'name': 50_000, ...}}, got {batches!r}.")


def _refuse_row(row: Any, stage: int) -> None:
    """Refuse what is no stage of a table, counted from 1."""
    if not isinstance(row, Mapping):
        raise CompositionError(
            f"Stages: stage {stage} is a {type(row).__name__}; it must be a dict, {{'name': batches, ...}}."
        )
    for name, count in row.items():
        if not isinstance(name, str) or not is_count(count):
            raise CompositionError(
                f"Stages: stage {stage} has {count!r} batches of the task {name!r}; give names and integers >= 0."
            )
    if not any(row.values()):
        raise CompositionError(f"Stages: stage {stage} has no batch; leave it out.")
