"""The settings of a training: of the loop in general, and of one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.errors import DataError
from onion.tasks.finetune.declared import setting
from onion.tasks.finetune.loop_settings import LoopSettings
from onion.tasks.names import TASK_NAMES, current_name
from onion.tasks.validators import (
    BELOW_ONE,
    COLUMNS,
    NATURAL,
    POSITIVE,
    SHARE,
    SWITCH,
    TEXT,
    TEXTS,
    as_float,
    as_text,
    as_texts,
)

ENCODER = "minilm"


@attrs.frozen(kw_only=True)
class TrainingSettings(LoopSettings):
    """What every fine-tuning is asked to do, of one task or of several; ``onion train --help`` describes each setting.

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
    layerwise_decay: float | None = setting(
        "optimization",
        "factor of the learning rate from each layer to the one below",
        SHARE,
        None,
        told="1",
        convert=attrs.converters.optional(as_float),
    )

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

    def as_file(self) -> dict[str, Any]:
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
