"""Ready runners for a task: to train, to test, to predict."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onion import (
    Accumulate,
    DataProvider,
    EarlyStopping,
    Evaluator,
    Forward,
    Freeze,
    GradientMachine,
    Logger,
    MixedPrecision,
    MovingAverage,
    NanGuard,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    Tester,
    UseAverage,
)
from onion.data.order import balanced
from onion.distributed import distributed
from onion.engine.periodic import Interval
from onion.errors import DataError
from onion.host import launch
from onion.messages import shown
from onion.monitoring.best import Mode
from onion.tasks.collector import Collector, Decoder
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.export.exported_network import forward_of
from onion.tasks.finetune.loggers import trackers
from onion.tasks.finetune.loop_settings import TEST_BATCH_SIZE, LoopSettings
from onion.tasks.finetune.settings import TrainingSettings
from onion.tasks.task import Task

if TYPE_CHECKING:
    from paddle import nn

LOG = "metrics.jsonl"
PREFIX = "dev."
"""Of the metrics of the test, as a training of one task reports them."""


def training_onion(
    network: nn.Layer,
    optimizer: Any,
    data: RunnerItem,
    tests: Sequence[Tester],
    output: Path,
    settings: TrainingSettings,
    *,
    test_every: Interval,
    monitor: str | None,
    mode: Mode = "max",
    train_items: Sequence[RunnerItem] = (),
    average: MovingAverage | None = None,
    resume: bool | Literal["force"] = True,
) -> Runner:
    """Return the runner that fine-tunes a network, tests it regularly and keeps the best checkpoint.

    Args:
        network: gives outputs and, by its method ``loss``, the loss.
        optimizer: of the network's parameters.
        data: the item that brings the batches.
        tests: the testers.
        output: the folder for checkpoints and the log.
        settings: of everything around the network.
        test_every: the interval between two tests, and between two checkpoints unless the settings say otherwise.
        monitor: the metric by which the best checkpoint is chosen and the training is ended early, as it is reported;
            None: the newest checkpoint is the best one.
        mode: whether more of it is better (default) or less.
        train_items: what alters each batch before the network sees it.
        average: keeps the moving average of the network. Default: none is kept.
        resume: as Saver takes it.
    """
    stop = [EarlyStopping(monitor, settings.early_stopping, mode)] if settings.early_stopping and monitor else []
    return Runner(
        Progress(),
        Signals(),
        Saver(
            output,
            settings.save_every or test_every,
            keep_last=settings.keep_last,
            monitor=monitor,
            mode=mode,
            resume=resume,
        ),
        *stop,
        *trackers(settings, output),
        Logger(output / LOG, every=settings.log_every),  # inside, for its clock begins when the clients are open
        *tests,
        data,
        *([average] if average else []),
        *(Freeze(network, pattern) for pattern in settings.freeze),
        ParameterUpdater(optimizer),
        *([] if settings.precision == "float32" else [MixedPrecision(settings.precision)]),
        NanGuard(check_every=settings.log_every),
        *([Accumulate(batches)] if (batches := settings.gradient_accumulation_steps) > 1 else []),
        *train_items,
        GradientMachine(network),
    )


def in_processes(training: Runner, settings: LoopSettings) -> Runner:
    """Return a training as the processes run it together that a launcher has started, if it has started several."""
    if launch.world_size() == 1 and settings.pieces is None:
        return training
    return distributed(
        training,
        settings.pieces,
        exact=settings.pieces is not None,
        seed=settings.seed,
        shard_optimizer=settings.shard_optimizer,
    )


def test_interval(settings: TrainingSettings, batches: int) -> Interval:
    """Return the interval between two tests of a training whose passes have so many batches: four tests a pass.

    A training that ends within its first pass is tested four times too.
    """
    steps = -(-batches // settings.gradient_accumulation_steps)
    return settings.test_every or max(1, min(steps, settings.max_steps or steps) // 4)


def training_data(
    task: Task,
    examples: Examples | FeatureStream,
    batch_size: int,
    seed: int,
    pad_id: int = 0,
    *,
    shuffle_buffer: int | None = None,
    class_balanced: bool = False,
) -> DataProvider:
    """Return the item that brings the batches of a task's training.

    Examples come in random order, in batches of similar length; those of a stream in the order of the file, or out of a
    shuffle buffer. ``class_balanced`` draws as many examples as there are with replacement, every label equally often.

    Raises:
        DataError: ``class_balanced`` is set, and the task has no classes.
    """
    collate = partial(task.collate, pad_id=pad_id)
    if isinstance(examples, FeatureStream):
        # Without a buffer nothing is drawn, and checkpoints of such runs have always recorded this seed.
        drawn = 0 if shuffle_buffer is None else seed
        return DataProvider(examples, batch_size, collate=collate, seed=drawn, shuffle_buffer=shuffle_buffer)
    weights = _balanced(task, examples) if class_balanced else None
    return DataProvider(
        examples, batch_size, collate=collate, shuffle=True, seed=seed, lengths=examples.lengths, weights=weights
    )


def _balanced(task: Task, examples: Examples) -> np.ndarray:
    classes = task.classes(examples)
    if classes is None:
        raise DataError(
            f"class_balanced: the examples of this task ({task.name}) are not of one class each; leave it out"
        )
    return balanced(classes)


def evaluation_onion(
    task: Task,
    network: nn.Layer,
    examples: Examples,
    metric: Any,
    pad_id: int = 0,
    train_items: Sequence[RunnerItem] = (),
    *,
    batch_size: int = TEST_BATCH_SIZE,
    average: MovingAverage | None = None,
) -> Runner:
    """Return the onion that measures a network, or its moving average, on labelled examples."""
    data = in_order(task, examples, pad_id, batch_size)
    averaged = [UseAverage(average)] if average else []
    return Runner(data, Evaluator(metric), *averaged, *train_items, Decoder(network), forward_of(network))


def prediction_onion(
    task: Task,
    inference: Runner,
    examples: Examples,
    collector: Collector,
    pad_id: int = 0,
    train_items: Sequence[RunnerItem] = (),
) -> Runner:
    """Return the runner that passes an inference runner's decoded outputs to a collector."""
    decoder = Decoder(inference[Forward].network)
    return Runner(in_order(task, examples, pad_id), collector, *train_items, decoder, inference)


def in_order(task: Task, examples: Examples, pad_id: int, batch_size: int = TEST_BATCH_SIZE) -> DataProvider:
    """Return the item that brings each example once.

    Examples of similar length share a batch, whatever their order; figures and predictions do not depend on it.
    """
    collate = partial(task.collate, pad_id=pad_id)
    return DataProvider(examples, batch_size, lengths=examples.lengths, collate=collate)


def best_figure(metric: Any, wanted: str) -> tuple[str, Mode]:
    """Return the name of a metric without its prefix, and whether to maximize or minimize it.

    Args:
        metric: an Evaluator's, before its first batch. Its attribute ``less_is_better``, if any, is the set of figures
            to minimize.
        wanted: the name, with or without the prefix: ``f1_macro``, ``dev.f1_macro``.

    Raises:
        DataError: the metric has no such figure.
    """
    name = wanted.removeprefix(PREFIX)
    known = _names(metric)
    if known and name not in known:
        raise DataError(f"monitor: the test has no metric {shown(wanted)}; it has {', '.join(known)}")
    return name, "min" if name in getattr(metric, "less_is_better", ()) else "max"


def _names(metric: Any) -> Sequence[str]:
    """Return the names of the figures; empty if a custom metric cannot tell before its first batch."""
    try:
        return getattr(metric, "names", None) or list(metric.result())
    except Exception:
        return ()
