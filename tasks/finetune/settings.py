"""The settings of a training job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.errors import DataError
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.registry import current_name
from onion.tasks.validators import NATURAL, NOT_NEGATIVE, PART, POSITIVE, SEED, SWITCH, TEXT, as_float

ENCODER = "minilm"


@attrs.frozen(kw_only=True)
class Settings:
    """The settings of ``onion train``.

    Attributes:
        task: the name of the task; earlier names are converted to the current one.
        train: the training file.
        dev: the file to test on while training.
        encoder: a known name or a folder.
        init_from: a folder of ``onion train``, or one of its checkpoints, to start from: its weights, config and
            tokenizer are used, and ``encoder`` is ignored.
        init_head: load the head from there, too; otherwise it is initialized at random.
        passes: over the training file.
        batch_size: examples per batch.
        learning_rate: the highest learning rate.
        seed: of all random generators.
        test_every: steps between two tests. Default: four tests per pass.
        warmup_ratio: the share of the steps in which the learning rate rises from 0.
        weight_decay: decoupled weight decay.
        max_grad_norm: the gradients are clipped to this global norm.
        monitor: the metric of the dev file by which the best checkpoint is chosen. Default: the task's.
        stream: read the training file in every pass, in file order, and cache no features of it.
        options: the settings of the task, such as ``max_length``.
    """

    task: str = attrs.field(converter=current_name, validator=TEXT)
    train: str = attrs.field(validator=TEXT)
    dev: str = attrs.field(validator=TEXT)
    encoder: str = attrs.field(default=ENCODER, validator=TEXT)
    init_from: str | None = attrs.field(default=None, validator=attrs.validators.optional(TEXT))
    init_head: bool = attrs.field(default=False, validator=SWITCH)
    passes: int = attrs.field(default=3, validator=NATURAL)
    batch_size: int = attrs.field(default=32, validator=NATURAL)
    learning_rate: float = attrs.field(default=5e-5, converter=as_float, validator=POSITIVE)
    seed: int = attrs.field(default=1, validator=SEED)
    test_every: int | None = attrs.field(default=None, validator=attrs.validators.optional(NATURAL))
    warmup_ratio: float = attrs.field(default=0.1, converter=as_float, validator=PART)
    weight_decay: float = attrs.field(default=0.01, converter=as_float, validator=NOT_NEGATIVE)
    max_grad_norm: float = attrs.field(default=1.0, converter=as_float, validator=POSITIVE)
    monitor: str | None = attrs.field(default=None, validator=attrs.validators.optional(TEXT))
    stream: bool = attrs.field(default=False, validator=SWITCH)
    options: Mapping[str, Any] = attrs.field(factory=dict)

    @init_head.validator
    def _head_of_something(self, _: Any, init_head: bool) -> None:
        if init_head and self.init_from is None:
            raise DataError("init_head needs init_from, the training to load the head from; set both or neither")

    def record(self) -> dict[str, Any]:
        """Return the settings with the checksums of the data files, as JSON values.

        Raises:
            DataError: a data file cannot be read.
        """
        sums = {"train_sha256": digest_of_file(self.train), "dev_sha256": digest_of_file(self.dev)}
        return {**attrs.asdict(self), "options": dict(self.options), **sums}

    def config(self) -> dict[str, Any]:
        """Return the settings as in a config file, with those of the task at the top level."""
        general = {name: value for name, value in attrs.asdict(self).items() if name != "options"}
        return {**general, **self.options}
