"""The settings of a training: of the loop in general, and of one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from onion.errors import DataError
from onion.tasks.finetune.declared import setting
from onion.tasks.names import TASK_NAMES, current_name
from onion.tasks.validators import (
    BELOW_ONE,
    COLUMNS,
    COUNT,
    INTERVAL,
    NATURAL,
    NOT_NEGATIVE,
    PART,
    POSITIVE,
    SEED,
    SHARE,
    SWITCH,
    TEXT,
    TEXTS,
    as_float,
    as_names,
    as_text,
    as_texts,
    one_of,
    some_of,
)

ENCODER, TEST_BATCH_SIZE = "minilm", 64
SCHEDULES = ("linear", "cosine", "constant", "palm")
PRECISIONS = ("float32", "bfloat16", "float16")
LOGGERS = ("tensorboard", "visualdl", "wandb", "mlflow")
LOGGERS_CHECK = some_of(LOGGERS)


@attrs.frozen(kw_only=True)
class TrainingSettings:
    """What every training is asked to do, of one task or of several; ``onion train --help`` describes each setting.

    A default of None is told beside it.
    """

    encoder: str = setting(
        "model", "folder, name from weights ls, or OWNER/NAME of the hub", TEXT, ENCODER, metavar="NAME|DIR"
    )
    init_from: str | None = setting(
        "model", "run, checkpoint or pushed model to start from, instead of --encoder", TEXT, None, metavar="NAME|DIR"
    )
    freeze: tuple[str, ...] = setting(
        "model",
        "parameters that are not trained, such as 'encoder.*'",
        TEXTS,
        (),
        metavar="PATTERN",
        convert=as_texts,
        many=True,
    )
    lora_rank: int | None = setting(
        "model", "train adapters of this rank in a frozen encoder (LoRA), such as 8", NATURAL, None, told="no adapters"
    )
    lora_alpha: float | None = setting(
        "model",
        "what adapters add is multiplied by lora_alpha / lora_rank",
        POSITIVE,
        None,
        told="twice lora_rank",
        convert=attrs.converters.optional(as_float),
    )
    lora_dropout: float = setting("model", "dropout of the adapters' inputs", BELOW_ONE, 0.0, convert=as_float)
    lora_targets: tuple[str, ...] = setting(
        "model",
        "linear layers with adapters, such as q_proj or '*'",
        TEXTS,
        (),
        told="query and value",
        metavar="NAME",
        convert=as_texts,
        many=True,
    )
    passes: int = setting("optimization", "passes over the training file", NATURAL, 3)
    max_steps: int | None = setting(
        "optimization", "updates of the whole training, whatever --passes is", NATURAL, None, told="those of --passes"
    )
    batch_size: int = setting("optimization", "examples per batch", NATURAL, 32)
    gradient_accumulation_steps: int = setting("optimization", "batches per update", NATURAL, 1)
    pieces: int | None = setting(
        "optimization",
        "pieces of a batch, a power of two, whose gradients are added in a fixed order: the same bits in any number "
        "of processes",
        NATURAL,
        None,
        told="one per process, in any order",
    )
    shard_optimizer: bool = setting(
        "optimization",
        "let each process keep the optimizer state of its share of the parameters only, which saves memory",
        SWITCH,
        False,
    )
    gradient_checkpointing: bool = setting(
        "optimization", "compute each layer again in the backward pass, which saves memory", SWITCH, False
    )
    learning_rate: float = setting("optimization", "highest learning rate", POSITIVE, 5e-5, convert=as_float)
    schedule: str = setting(
        "optimization",
        "how the learning rate falls after the warm-up",
        one_of(SCHEDULES),
        "linear",
        metavar="|".join(SCHEDULES),
    )
    warmup_ratio: float = setting(
        "optimization", "share of the updates with a rising learning rate", PART, 0.1, convert=as_float
    )
    warmup_steps: int | None = setting(
        "optimization",
        "updates with a rising learning rate, whatever --warmup-ratio is",
        COUNT,
        None,
        told="those of --warmup-ratio",
    )
    layerwise_decay: float | None = setting(
        "optimization",
        "factor of the learning rate from each layer to the one below",
        SHARE,
        None,
        told="1",
        convert=attrs.converters.optional(as_float),
    )
    weight_decay: float = setting("optimization", "decoupled weight decay", NOT_NEGATIVE, 0.01, convert=as_float)
    adam_beta1: float = setting("optimization", "decay of Adam's first moment", BELOW_ONE, 0.9, convert=as_float)
    adam_beta2: float = setting("optimization", "decay of Adam's second moment", BELOW_ONE, 0.999, convert=as_float)
    adam_epsilon: float = setting("optimization", "term in Adam's denominator", POSITIVE, 1e-8, convert=as_float)
    max_grad_norm: float = setting(
        "optimization", "global norm to clip the gradients to", POSITIVE, 1.0, convert=as_float
    )
    precision: Literal["float32", "bfloat16", "float16"] = setting(
        "optimization",
        "arithmetic of the network; 16 bits need a GPU",
        one_of(PRECISIONS),
        "float32",
        metavar="|".join(PRECISIONS),
    )
    ema_decay: float | None = setting(
        "optimization",
        "decay of a moving average of the weights, which is tested and predicts",
        BELOW_ONE,
        None,
        told="no average",
        convert=attrs.converters.optional(as_float),
    )
    seed: int = setting("optimization", "seed of all random generators", SEED, 1)
    test_every: int | Literal["pass"] | None = setting(
        "testing and checkpoints",
        "steps between two tests, or pass: a test after each pass",
        INTERVAL,
        None,
        told="a quarter of a pass",
        metavar="STEPS|pass",
    )
    test_batch_size: int = setting("testing and checkpoints", "examples per batch of a test", NATURAL, TEST_BATCH_SIZE)
    monitor: str | None = setting(
        "testing and checkpoints",
        "metric that selects the best checkpoint",
        TEXT,
        None,
        told="the task's",
        metavar="METRIC",
    )
    early_stopping: int | None = setting(
        "testing and checkpoints",
        "tests in a row without a better --monitor after which the training ends",
        NATURAL,
        None,
        told="it runs to its end",
        metavar="TESTS",
    )
    save_every: int | Literal["pass"] | None = setting(
        "testing and checkpoints",
        "steps between two checkpoints, or pass: one after each pass",
        INTERVAL,
        None,
        told="those of --test-every",
        metavar="STEPS|pass",
    )
    keep_last: int = setting("testing and checkpoints", "checkpoints to keep, besides the best one", NATURAL, 1)
    loggers: tuple[str, ...] = setting(
        "monitoring",
        f"also write to some of {', '.join(LOGGERS)}",
        LOGGERS_CHECK,
        (),
        metavar="NAME,...",
        convert=as_names,
    )
    log_every: int = setting(
        "monitoring",
        "steps between two rows of metrics.jsonl, points of loggers, and checks for NaN",
        NATURAL,
        50,
        metavar="STEPS",
    )

    def config(self) -> dict[str, Any]:
        """Return the settings as a config file has them."""
        return self.as_json()

    @lora_alpha.validator
    @lora_dropout.validator
    @lora_targets.validator
    def _of_adapters(self, field: Any, value: Any) -> None:
        if value and self.lora_rank is None:
            raise DataError(f"{field.name} needs lora_rank, the rank of the adapters; set both or neither")

    @property
    def end(self) -> tuple[int | None, int | None]:
        """The passes or the steps after which the training ends, as the arguments of ``Runner.run``."""
        return (self.passes if self.max_steps is None else None), self.max_steps

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name, as JSON values."""
        return attrs.asdict(self, value_serializer=plain_values)


@attrs.frozen(kw_only=True)
class Settings(TrainingSettings):
    """What ``onion train`` is asked to do with one task.

    Attributes:
        options: the settings of the task itself, such as ``max_length``.
    """

    task: str = setting("data", f"one of {', '.join(TASK_NAMES)}", TEXT, metavar="NAME", convert=current_name)
    train: str = setting("data", "training file; also a pattern, a,b, .parquet or hf:NAME/SPLIT", TEXT, metavar="FILE")
    dev: str = setting(
        "data",
        "file to test on while training; or a share or a fold of the training file: 0.1, 1/5",
        TEXT,
        metavar="FILE|SHARE|FOLD",
        convert=as_text,
    )
    columns: Mapping[str, str] = setting(
        "data",
        "columns of the task and of the files, where they differ",
        COLUMNS,
        attrs.Factory(dict),
        metavar="OURS=THEIRS,...",
    )
    stream: bool = setting("data", "read the training file in its own order in every pass", SWITCH, False)
    shuffle_buffer: int | None = setting(
        "data",
        "examples of a stream to hold, of which a random one comes next",
        NATURAL,
        None,
        told="the order of the file",
        metavar="EXAMPLES",
    )
    class_balanced: bool = setting("data", "draw examples of every label equally often", SWITCH, False)
    init_head: bool = setting("model", "load the head from --init-from too", SWITCH, False)
    options: Mapping[str, Any] = attrs.field(factory=dict)

    @class_balanced.validator
    def _of_the_order(self, _: Any, __: Any) -> None:
        check_order(self.stream, self.shuffle_buffer, self.class_balanced)

    @init_head.validator
    def _head_of_something(self, _: Any, init_head: bool) -> None:
        if init_head and self.init_from is None:
            raise DataError("init_head needs init_from, the training to load the head from; set both or neither")

    def config(self) -> dict[str, Any]:
        """Return the settings as a config file has them: those of the task among the others."""
        general = {name: value for name, value in self.as_json().items() if name != "options"}
        return {**general, **self.options}


def check_order(stream: bool, shuffle_buffer: int | None, class_balanced: bool) -> None:
    """Raise DataError for settings of the order of the examples that exclude each other."""
    if shuffle_buffer is not None and not stream:
        raise DataError("shuffle_buffer is for stream; without it all examples are shuffled: leave shuffle_buffer out")
    if class_balanced and stream:
        raise DataError(
            "class_balanced draws from all examples of the training file, which stream never holds; leave one of them "
            "out, or weigh the loss: class_weights=balanced"
        )


def plain_values(_: Any, __: Any, value: Any) -> Any:
    """Serialize a tuple as the list that it is in a file; for ``attrs.asdict``."""
    return list(value) if isinstance(value, tuple) else value
