"""The settings of a training loop, whatever it trains."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from onion.tasks.finetune.declared import setting
from onion.tasks.validators import (
    BELOW_ONE,
    COUNT,
    INTERVAL,
    NATURAL,
    NOT_NEGATIVE,
    PART,
    POSITIVE,
    SEED,
    SWITCH,
    TEXT,
    as_float,
    as_names,
    one_of,
    some_of,
)

TEST_BATCH_SIZE = 64
SCHEDULES = ("linear", "cosine", "constant", "palm")
PRECISIONS = ("float32", "bfloat16", "float16")
LOGGERS = ("tensorboard", "visualdl", "wandb", "mlflow")
LOGGERS_CHECK = some_of(LOGGERS)


@attrs.frozen(kw_only=True)
class LoopSettings:
    """What every training is asked to do: updates, tests, checkpoints and logs.

    A default of None is told beside it.
    """

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

    def as_file(self) -> dict[str, Any]:
        """Return the settings as a config file has them."""
        return self.as_json()

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name, as JSON values."""
        return attrs.asdict(self, value_serializer=plain_values)


def plain_values(_: Any, __: Any, value: Any) -> Any:
    """Serialize a tuple as the list that it is in a file; for ``attrs.asdict``."""
    return list(value) if isinstance(value, tuple) else value
