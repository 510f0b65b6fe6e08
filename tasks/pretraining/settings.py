"""The settings of ``onion pretrain``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from onion.errors import CompositionError, DataError
from onion.tasks.finetune.declared import Declared, declared_in, setting
from onion.tasks.finetune.loop_settings import LoopSettings
from onion.tasks.names import PRETRAINING_TASK_NAMES
from onion.tasks.validators import (
    BELOW_ONE,
    COUNT,
    INTERVAL,
    NATURAL,
    PART,
    POSITIVE,
    SWITCH,
    TEXT,
    as_float,
    as_names,
    one_of,
    some_of,
)
from onion.validation import Check

if TYPE_CHECKING:
    from onion.multitask.stages import Stages

ORDERS = ("together", "continual", "one-by-one")
SCHEDULES = ("linear", "cosine", "constant", "noam")
ENDLESS = ("constant", "noam")
"""Schedules that do not hang on how long the training is."""

LAYOUTS = ("huggingface", "paddlenlp", "onion")
MASKING = "masking"
"""What the settings of the masks begin with, where those of a task begin with its name."""

KEPT = 5
"""By default a task of a continual schedule has a fifth of its batches in each later stage, as in ERNIE 2.0's study."""

NOT_OF_PRETRAINING = ("ema_decay", "test_batch_size", "monitor", "early_stopping")
"""Settings of other trainings: here no average is kept, no checkpoint is the best, and tests have as large batches."""

EXCLUSIVE = (("config", "encoder"), ("max_steps", "stages"))
"""Settings of which a pretraining has one."""

TASKS = some_of(PRETRAINING_TASK_NAMES)

TABLE = Check(
    'a list of stages in JSON, such as [{"knowledge-masking": 1000}]',
    lambda value: isinstance(value, list | tuple) and all(isinstance(row, Mapping) for row in value),
    reads=json.loads,
)


@attrs.frozen(kw_only=True)
class PretrainingSettings(LoopSettings):
    """What ``onion pretrain`` is asked to do; ``onion pretrain --help`` describes each setting.

    Attributes:
        options: settings of single tasks and of the masks, such as ``sentence-order.max_length`` or ``masking.share``.
    """

    corpus: str = setting(
        "data",
        "folder of onion corpus build, or files of PaddleNLP or Megatron-LM, to learn from",
        TEXT,
        metavar="DIR|FILE",
    )
    held_out: str | None = setting(
        "data", "another corpus, to test on", TEXT, None, told="no tests", metavar="DIR|FILE"
    )
    tokenizer: str | None = setting(
        "data",
        "that made a corpus of PaddleNLP or Megatron-LM, whose files do not hold it: folder or known name",
        TEXT,
        None,
        told="the corpus's own",
        metavar="NAME|DIR",
    )
    tasks: tuple[str, ...] = setting(
        "data",
        f"some of {', '.join(PRETRAINING_TASK_NAMES)}, in the order in which a continual schedule begins them",
        TASKS,
        ("knowledge-masking",),
        metavar="TASK,...",
        convert=as_names,
    )
    max_length: int = setting("data", "most tokens of an example, with special ones", NATURAL, 128)
    config: str | None = setting(
        "model", "config.json of an encoder that begins with random weights", TEXT, None, metavar="FILE"
    )
    encoder: str | None = setting(
        "model", "encoder to begin with: folder, name from weights ls, or OWNER/NAME", TEXT, None, metavar="NAME|DIR"
    )
    layout: str = setting(
        "model", "of the weights in the folder encoder/", one_of(LAYOUTS), "huggingface", metavar="|".join(LAYOUTS)
    )
    max_steps: int | None = setting("optimization", "batches of all tasks", NATURAL, None, told="those of --stages")
    tokens_per_batch: int = setting("optimization", "most tokens of a batch, without padding", NATURAL, 4096)
    gradient_accumulation_steps: int = setting("optimization", "batches per update", NATURAL, 1)
    order: Literal["together", "continual", "one-by-one"] = setting(
        "optimization",
        "how the tasks share --max-steps: all in one stage; one more each stage; or one after the other",
        one_of(ORDERS),
        "together",
        metavar="|".join(ORDERS),
    )
    keep: int | None = setting(
        "optimization",
        "batches of a task in each later stage of a continual schedule",
        COUNT,
        None,
        told="a fifth of its batches",
    )
    stages: tuple[Mapping[str, int], ...] | None = setting(
        "optimization",
        "the batches of each task in each stage, in JSON, instead of --max-steps",
        TABLE,
        None,
        metavar="JSON",
        convert=attrs.converters.optional(tuple),
    )
    learning_rate: float = setting("optimization", "highest learning rate", POSITIVE, 1e-4, convert=as_float)
    schedule: str = setting(
        "optimization",
        "how the learning rate falls after the warm-up",
        one_of(SCHEDULES),
        "linear",
        metavar="|".join(SCHEDULES),
    )
    rates_by_task: bool = setting(
        "optimization", "let the learning rate of each task rise and fall by its own batches", SWITCH, False
    )
    warmup_ratio: float = setting(
        "optimization", "share of the updates with a rising learning rate", PART, 0.01, convert=as_float
    )
    adam_beta2: float = setting("optimization", "decay of Adam's second moment", BELOW_ONE, 0.98, convert=as_float)
    adam_epsilon: float = setting("optimization", "term in Adam's denominator", POSITIVE, 1e-6, convert=as_float)
    test_every: int | Literal["pass"] | None = setting(
        "testing and checkpoints",
        "steps between two tests, or pass: a test after each stage",
        INTERVAL,
        "pass",
        metavar="STEPS|pass",
    )
    save_every: int | Literal["pass"] | None = setting(
        "testing and checkpoints",
        "steps between two checkpoints, or pass: one after each stage",
        INTERVAL,
        1000,
        metavar="STEPS|pass",
    )
    peak_gflops: float | None = setting(
        "monitoring",
        "what the processor can do, in GFLOP/s, of which the share is logged",
        POSITIVE,
        None,
        told="not known",
        convert=attrs.converters.optional(as_float),
    )
    options: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def declared(cls) -> dict[str, tuple[Declared, Any]]:
        """Return the settings that a pretraining has: name -> (declaration, default)."""
        return {name: each for name, each in declared_in(cls).items() if name not in NOT_OF_PRETRAINING}

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name, as JSON values."""
        return {name: value for name, value in super().as_json().items() if name not in NOT_OF_PRETRAINING}

    def __attrs_post_init__(self) -> None:
        if (self.config is None) == (self.encoder is None):
            raise DataError("give one of config, for random weights, and encoder, for pretrained ones")
        if (self.max_steps is None) == (self.stages is None):
            raise DataError("give one of max_steps, the batches of all tasks, and stages, those of each task")
        if self.stages is not None and self.order != "together":
            raise DataError("order is for max_steps; stages already set the order, so leave it out")
        if self.keep is not None and self.order != "continual":
            raise DataError("keep is for order=continual; leave it out")
        if self.schedule in ENDLESS and self.warmup_steps is None and self.warmup_ratio > 0:
            raise DataError(
                f"schedule {self.schedule}: it does not depend on the length of the training, so its warm-up cannot be "
                "a share of it; give warmup_steps"
            )
        if self.rates_by_task and self.schedule not in ENDLESS:
            raise DataError(
                f"rates_by_task: the schedule {self.schedule} ends with the training, and tasks do not end together; "
                f"use one of {', '.join(ENDLESS)}"
            )
        if self.rates_by_task and self.gradient_accumulation_steps > 1:
            raise DataError(
                "rates_by_task: an update of several batches may be of several tasks, and has one rate; leave "
                "gradient_accumulation_steps out"
            )
        self._check_names()

    def _check_names(self) -> None:
        """Refuse tasks that have no batch, and settings of tasks that are not here."""
        rows = [self._shared()] if self.stages is None else self.stages
        for name in self.tasks:
            if not any(row.get(name) for row in rows):
                given = "max_steps" if self.stages is None else "stages"
                raise DataError(f"{given} has no batch for {name}; give it some, or leave the task out")
        for name in self.options:
            owner = name.partition(".")[0]
            if owner not in (*self.tasks, MASKING):
                raise DataError(f"{name}: no task of this pretraining is called {owner}")

    def updates(self) -> int:
        """Return the updates of the whole training; one is of batches of a single stage."""
        return sum(-(-sum(row.values()) // self.gradient_accumulation_steps) for row in self.strategy().table)

    def rates(self, total: int) -> Any:
        """Return the learning rate schedule of a training of so many updates."""
        from onion import schedules

        rising = int(total * self.warmup_ratio) if self.warmup_steps is None else self.warmup_steps
        over = {"linear": schedules.linear_warmup_and_decay, "cosine": schedules.cosine}
        endless = {"constant": schedules.constant, "noam": schedules.noam}
        if self.schedule in over:
            return over[self.schedule](self.learning_rate, total, warmup_steps=rising)
        found = endless[self.schedule](self.learning_rate, rising)
        return schedules.by_task(found) if self.rates_by_task else found

    def strategy(self) -> Stages:
        """Return the schedule of the tasks.

        Raises:
            DataError: it has no batch for a task, or the numbers do not fit together.
        """
        from onion.multitask.stages import Stages  # not above: the command line asks for the flags alone

        try:
            if self.stages is not None:
                return Stages.of_table(self.stages, seed=self.seed)
            batches = self._shared()
            if self.order == "together":
                return Stages.together(batches, seed=self.seed)
            if self.order == "one-by-one":
                return Stages.one_by_one(batches, seed=self.seed)
            kept = min(batches.values()) // KEPT if self.keep is None else self.keep
            return Stages(batches, kept, seed=self.seed)
        except CompositionError as error:
            raise DataError(str(error)) from None

    def _shared(self) -> dict[str, int]:
        """Return the batches of each task: equal shares, of which the first ones may have one more."""
        assert self.max_steps is not None
        share, rest = divmod(self.max_steps, len(self.tasks))
        return {name: share + (number < rest) for number, name in enumerate(self.tasks)}
