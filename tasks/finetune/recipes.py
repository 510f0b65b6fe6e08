"""Ready runners for a task: to train, to test, to predict."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from paddle import nn

from onion import (
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    NanGuard,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    Tester,
)
from onion.errors import DataError
from onion.messages import shown
from onion.monitoring.best import Mode
from onion.tasks.collector import Collector, Decoder
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.task import Task

LOG = "metrics.jsonl"
LOOK = 50
"""Steps between two readings of the loss, for the log and to stop if it is NaN."""
TEST_BATCH = 64
PREFIX = "dev."
"""Prefix of the test's metrics in a training."""


def training_onion(
    task: Task,
    network: nn.Layer,
    optimizer: Any,
    train: Examples | FeatureStream,
    test: Runner,
    output: Path,
    *,
    monitor: str,
    mode: Mode = "max",
    batch_size: int,
    seed: int,
    test_every: int,
    pad_id: int = 0,
    train_items: Sequence[RunnerItem] = (),
    resume: bool | Literal["force"] = True,
) -> Runner:
    """Return the runner that fine-tunes a network, tests it regularly and keeps the best checkpoint.

    Args:
        task: makes the batches.
        network: has a method ``loss``.
        optimizer: of the network's parameters.
        train: the examples; a stream keeps the order of its file, other examples are shuffled and batched by length.
        test: the runner that tests the network; its metrics become ``dev.<metric>``.
        output: the folder for checkpoints and the log.
        monitor: the metric of the test by which the best checkpoint is chosen.
        mode: whether the metric is to be maximized (default) or minimized.
        batch_size: examples per batch.
        seed: of the order of the examples.
        test_every: steps between two tests; each is followed by a checkpoint.
        pad_id: the padding token.
        train_items: inserted between the data and the network.
        resume: see Saver.
    """
    collate = partial(task.collate, pad_id=pad_id)
    lengths = train.lengths if isinstance(train, Examples) else None
    in_random_order: dict[str, Any] = {} if lengths is None else {"shuffle": True, "seed": seed, "lengths": lengths}
    return Runner(
        Progress(),
        Signals(leave=False),  # the caller reports metrics before the process exits
        Saver(output, every=test_every, keep_last=1, monitor=f"{PREFIX}{monitor}", mode=mode, resume=resume),
        Logger(output / LOG, every=LOOK),
        Tester(test, every=test_every, name="dev"),
        DataProvider(train, batch_size, collate=collate, **in_random_order),
        *train_items,
        ParameterUpdater(optimizer),
        NanGuard(check_every=LOOK),
        GradientMachine(network),
    )


def evaluation_onion(
    task: Task,
    network: nn.Layer,
    examples: Examples,
    metric: Any,
    pad_id: int = 0,
    train_items: Sequence[RunnerItem] = (),
) -> Runner:
    """Return the runner that measures a network on labelled examples."""
    data = _in_order(task, examples, pad_id)
    return Runner(data, Evaluator(metric), *train_items, Decoder(network), Forward(network))


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
    return Runner(_in_order(task, examples, pad_id), collector, *train_items, decoder, inference)


def _in_order(task: Task, examples: Examples, pad_id: int) -> DataProvider:
    # Examples of similar length share a batch; metrics and predictions do not depend on the order.
    collate = partial(task.collate, pad_id=pad_id)
    return DataProvider(examples, TEST_BATCH, lengths=examples.lengths, collate=collate)


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
