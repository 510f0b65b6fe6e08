"""The ready onions of a task: to train, to test, to predict."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from paddle import nn

from onion import (
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    ParameterUpdater,
    Progress,
    Runner,
    Saver,
    Signals,
    Tester,
)
from onion.tasks.collector import Collector
from onion.tasks.texts import TextExamples, batch_of

LOG = "metrics.jsonl"
BEST = "dev.accuracy"
TEST_BATCH = 64


def training_onion(
    network: nn.Layer,
    optimizer: Any,
    train: TextExamples,
    test: Runner,
    out: Path,
    *,
    batch_size: int,
    seed: int,
    test_every: int,
    pad_id: int = 0,
) -> Runner:
    """Return the onion that fine-tunes a network, tests it while it trains and keeps the best checkpoint.

    Args:
        network: gives outputs and, by its method ``cost``, the cost.
        optimizer: of the network's parameters.
        train: the examples.
        test: the onion that tests the network; its metrics become ``dev.<metric>``.
        out: the folder for checkpoints and the log.
        batch_size: examples a batch.
        seed: of the order of the examples.
        test_every: steps between two tests; each is followed by a checkpoint.
        pad_id: the padding token.
    """
    return Runner(
        Progress(),
        Signals(),
        Saver(out, every=test_every, keep=1, best=BEST),
        Logger(out / LOG, every=50),
        Tester(test, every=test_every, name="dev"),
        DataProvider(
            train,
            batch_size,
            shuffle=True,
            seed=seed,
            length=train.lengths,
            collate=partial(batch_of, pad_id=pad_id),
        ),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


def evaluation_onion(network: nn.Layer, examples: TextExamples, metric: Any, pad_id: int = 0) -> Runner:
    """Return the onion that measures a network on labelled examples."""
    return Runner(_in_order(examples, pad_id), Evaluator(metric), Forward(network))


def prediction_onion(network: nn.Layer, examples: TextExamples, collector: Collector, pad_id: int = 0) -> Runner:
    """Return the onion that hands a network's outputs for examples to a collector."""
    return Runner(Progress(), _in_order(examples, pad_id), collector, Forward(network))


def _in_order(examples: TextExamples, pad_id: int) -> DataProvider:
    # Examples of similar length share a batch, whatever their order; figures and predictions do not depend on it.
    return DataProvider(examples, TEST_BATCH, length=examples.lengths, collate=partial(batch_of, pad_id=pad_id))
