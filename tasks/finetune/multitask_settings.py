"""The settings of a training of several tasks over one encoder."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal

import attrs

from onion.errors import DataError
from onion.messages import listed, shown
from onion.tasks.finetune.settings import TrainingSettings, check_order
from onion.tasks.names import current_name
from onion.tasks.validators import COLUMNS, NATURAL, PART, POSITIVE, SWITCH, TEXT, as_float, as_text, one_of

STRATEGIES = ("mix-ratio", "uniform", "by-size", "temperature", "round-robin", "by-loss")
FINISHED = ("sampled", "stop")

optional = attrs.validators.optional


def _as_entries(tasks: Any) -> Any:
    if not isinstance(tasks, Mapping):
        return tasks
    return {name: TaskSettings.from_config(name, entry) for name, entry in tasks.items()}


@attrs.frozen(kw_only=True)
class TaskSettings:
    """What a training of several tasks is asked to do with one of them.

    Attributes:
        task: the kind of task, such as ``classification``.
        train: the training file.
        dev: the file to test on while training, or a share or a fold of the training file. Default: the task is not
            tested.
        columns: column of the task -> column of the files, where they differ. Default: none do.
        mix_ratio: batches for each batch of the reference task. Default 1.
        target: whether the training waits until this task has had its batches; if not, it is an auxiliary task. Default
            True.
        loss_weight: what its loss is multiplied by. Default 1.
        learning_rate: the highest learning rate of its head. Default: that of the training.
        batch_size: examples per batch. Default: that of the training.
        stream: read the training file in its own order in every pass. Default False.
        shuffle_buffer: examples of a stream to hold, of which a random one comes next. Default: the order of the file.
        class_balanced: draw examples of every label equally often. Default False.
        share_head_with: the name of a task of the same kind and labels whose head it uses. Default: a head of its own.
        teacher: the folder of a run of the same kind of task, a frozen network from which the head learns too.
        teacher_weight: the share of the teacher in the loss, from 0 to 1. Default 0.5.
        teacher_temperature: what the logits are divided by before both are compared. Default 2.
        options: the settings of the kind of task, such as ``max_length``.
    """

    task: str = attrs.field(converter=current_name, validator=TEXT)
    train: str = attrs.field(validator=TEXT)
    dev: str | None = attrs.field(default=None, converter=as_text, validator=optional(TEXT))
    columns: Mapping[str, str] = attrs.field(factory=dict, validator=COLUMNS)
    mix_ratio: float = attrs.field(default=1.0, converter=as_float, validator=POSITIVE)
    target: bool = attrs.field(default=True, validator=SWITCH)
    loss_weight: float = attrs.field(default=1.0, converter=as_float, validator=POSITIVE)
    learning_rate: float | None = attrs.field(default=None, converter=as_float, validator=optional(POSITIVE))
    batch_size: int | None = attrs.field(default=None, validator=optional(NATURAL))
    stream: bool = attrs.field(default=False, validator=SWITCH)
    shuffle_buffer: int | None = attrs.field(default=None, validator=optional(NATURAL))
    class_balanced: bool = attrs.field(default=False, validator=SWITCH)
    share_head_with: str | None = attrs.field(default=None, validator=optional(TEXT))
    teacher: str | None = attrs.field(default=None, validator=optional(TEXT))
    teacher_weight: float = attrs.field(default=0.5, converter=as_float, validator=PART)
    teacher_temperature: float = attrs.field(default=2.0, converter=as_float, validator=POSITIVE)
    options: Mapping[str, Any] = attrs.field(factory=dict)

    @class_balanced.validator
    def _of_the_order(self, _: Any, __: Any) -> None:
        check_order(self.stream, self.shuffle_buffer, self.class_balanced)

    @classmethod
    def from_config(cls, name: str, entry: Any) -> TaskSettings:
        """Read the entry of a task: its settings and those of its kind, which stand among them.

        Raises:
            DataError: the entry is no mapping, or a setting is missing or wrong; the message names the task.
        """
        if isinstance(entry, TaskSettings):
            return entry
        if not isinstance(entry, Mapping):
            raise DataError(f"tasks: {shown(name)} must be a mapping of settings, such as 'task: classification'")
        fields = attrs.fields_dict(cls)
        given = {key: value for key, value in entry.items() if key != "options"}
        options = {key: value for key, value in given.items() if key not in fields}
        for needed in ("task", "train"):
            if needed not in given:
                raise DataError(f"tasks: {shown(name)} has no {needed}; add it to its entry")
        try:
            own = {key: value for key, value in given.items() if key in fields}
            return cls(**own, options={**entry.get("options", {}), **options})
        except (DataError, TypeError) as error:
            raise DataError(f"tasks: {shown(name)}: {error}") from None


@attrs.frozen(kw_only=True)
class MultiTaskSettings(TrainingSettings):
    """What ``onion train`` is asked to do with several tasks over one encoder.

    Attributes:
        tasks: by name.
        strategy: how the task of a batch is chosen: a name in STRATEGIES. Default: in proportion to the mix ratios.
        temperature: of the strategy ``temperature``. Default 2.
        reference: the task whose passes are counted; not a stream. Default: the first target.
        finished: whether a target that has had its batches is ``sampled`` further (default) or ``stop`` s.
    """

    tasks: Mapping[str, TaskSettings] = attrs.field(converter=_as_entries)
    strategy: str = attrs.field(default="mix-ratio", validator=one_of(STRATEGIES))
    temperature: float = attrs.field(default=2.0, converter=as_float, validator=POSITIVE)
    reference: str | None = attrs.field(default=None, validator=optional(TEXT))
    finished: Literal["sampled", "stop"] = attrs.field(default="sampled", validator=one_of(FINISHED))

    @tasks.validator
    def _check_tasks(self, _: Any, tasks: Any) -> None:
        if not isinstance(tasks, Mapping) or not tasks or not all(isinstance(name, str) for name in tasks):
            raise DataError("tasks must be a mapping: name -> the settings of the task")
        for name, task in tasks.items():
            self._check_shared_head(name, task, tasks)
        tested = any(task.dev for task in tasks.values())
        for name in () if tested else ("monitor", "early_stopping"):
            if getattr(self, name) is not None:
                raise DataError(f"{name} needs a task with a dev file to test on; tasks: none has one")
        if any("." in name for name in tasks):
            raise DataError("tasks: a name cannot have a '.', which separates names of parameters; leave it out")
        if not any(task.target for task in tasks.values()):
            raise DataError("tasks: all are auxiliary, so the training would never end; make one a target")

    @reference.validator
    def _check_reference(self, _: Any, reference: str | None) -> None:
        if reference is not None and not (reference in self.tasks and self.tasks[reference].target):
            targets = [name for name, task in self.tasks.items() if task.target]
            raise DataError(f"reference must be one of the targets {listed(targets)}, got {shown(reference)}")
        if self.tasks[self.reference_task].stream:
            raise DataError(
                f"tasks: {shown(self.reference_task)} is a stream, by whose passes no others can be planned; name a "
                "target without stream as the reference, or leave stream out"
            )

    def _check_shared_head(self, name: str, task: TaskSettings, tasks: Mapping[str, TaskSettings]) -> None:
        other = task.share_head_with
        if other is None:
            return
        if other not in tasks or other == name:
            raise DataError(f"tasks: {shown(name)}: share_head_with names {shown(other)}; {_near(other, tasks, name)}")
        if tasks[other].share_head_with is not None:
            raise DataError(f"tasks: {shown(name)}: {shown(other)} shares a head itself; name the task that owns it")
        if tasks[other].task != task.task:
            raise DataError(
                f"tasks: {shown(name)}: {shown(other)} is of the kind {tasks[other].task}, which has another head than "
                f"{task.task}; leave share_head_with out"
            )
        if task.learning_rate is not None:
            raise DataError(f"tasks: {shown(name)}: its head belongs to {shown(other)}; give the learning_rate there")

    @property
    def reference_task(self) -> str:
        """The name of the task whose passes are counted."""
        return self.reference or next(name for name, task in self.tasks.items() if task.target)

    def as_file(self) -> dict[str, Any]:
        """Return the settings as a config file has them: those of the kind of a task among its others."""
        given = self.as_json()
        for entry in given["tasks"].values():
            entry |= entry.pop("options")
        return given


def _near(name: str, tasks: Mapping[str, Any], but: str) -> str:
    others = [each for each in tasks if each != but]
    near = get_close_matches(name, others, n=1)
    return f"did you mean {shown(near[0])}?" if near else f"the other tasks are {listed(others)}"
