"""The job behind ``onion train``."""

from __future__ import annotations

import random
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
import numpy as np
import paddle

from onion import Runner, Signals
from onion.drawing import as_svg
from onion.errors import DataError
from onion.items.saver import best_checkpoint
from onion.models import hub
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classifier
from onion.tasks.labels import Labels
from onion.tasks.metrics import ClassificationMetric
from onion.tasks.onions import evaluation_onion, training_onion
from onion.tasks.optimization import fine_tuning_optimizer
from onion.tasks.settings import DRAWINGS, LABELS, Settings, alone_in, claim_folder, write_json, write_text
from onion.tasks.texts import TextExamples, check_max_length, encode, label_names, read_table, tell_cut


@attrs.frozen
class Trained:
    """What a training job came to.

    Attributes:
        report: figures for one JSON line.
        signal: the number of the signal that ended it early, or None.
    """

    report: dict[str, Any]
    signal: int | None


def train(settings: Settings, out: Path) -> Trained:
    """Fine-tune an encoder; ``out`` then holds checkpoints, log, tokenizer, labels and the onion's drawing.

    The same call goes on where an interrupted one was saved.

    Raises:
        OnionError: a file, the weights or the folder are not what they should be; nothing is half-written.
    """
    begun = perf_counter()
    folder = hub.resolve(settings.encoder)
    check_max_length(settings.max_length, EncoderConfig.read(folder).max_length)
    tokenizer = Tokenizer.from_pretrained(folder)
    labels, train_set, dev_set = _read_sets(settings, tokenizer)
    seed_everything(settings.seed)
    network = Classifier(Encoder.from_pretrained(folder), len(labels))
    runner = _compose(settings, network, labels, train_set, dev_set, out, tokenizer.pad_id)
    claim_folder(out, {**settings.record(), "pairs": train_set.pairs})  # from here on, things are written
    with alone_in(out):
        tokenizer.save_pretrained(out)
        network.encoder.config.write(out)
        write_json(out / LABELS, labels.names)
        for name, drawing in zip(DRAWINGS, (f"{runner}\n", as_svg(runner)), strict=True):
            write_text(out / name, drawing)
        for path, examples in ((settings.train, train_set), (settings.dev, dev_set)):
            tell_cut(path, examples, settings.max_length)
        print(runner, flush=True)
        state = runner.run(passes=settings.passes)
    best = best_checkpoint(out)
    report = {
        "step": state.step,
        **{name: best.run["metrics"][name] for name in sorted(best.run["metrics"])},
        "best_step": best.step,
        "majority_accuracy": dev_set.majority,
        "seconds": round(perf_counter() - begun, 1),
        "out": str(out),
    }
    return Trained(report, runner[Signals].received)


def _read_sets(settings: Settings, tokenizer: Tokenizer) -> tuple[Labels, TextExamples, TextExamples]:
    """Read and tokenise both files; the labels are those of the training file."""
    tables = [read_table(path, labelled=True) for path in (settings.train, settings.dev)]
    labels = Labels.of(label_names(tables[0]))
    if len(labels) < 2:
        raise DataError(f"{settings.train}: all rows have the label {labels.names[0]!r}; there is nothing to learn.")
    train_set = encode(tables[0], tokenizer, settings.max_length, labels)
    return labels, train_set, encode(tables[1], tokenizer, settings.max_length, labels, train_set.pairs)


def _compose(
    settings: Settings,
    network: Classifier,
    labels: Labels,
    train_set: TextExamples,
    dev_set: TextExamples,
    out: Path,
    pad_id: int,
) -> Runner:
    steps_per_pass = -(-len(train_set) // settings.batch_size)
    optimizer = fine_tuning_optimizer(
        network,
        settings.lr,
        settings.passes * steps_per_pass,
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        clip=settings.clip,
    )
    return training_onion(
        network,
        optimizer,
        train_set,
        evaluation_onion(network, dev_set, ClassificationMetric(labels), pad_id),
        out,
        batch_size=settings.batch_size,
        seed=settings.seed,
        test_every=settings.test_every or max(1, steps_per_pass // 4),
        pad_id=pad_id,
    )


def seed_everything(seed: int) -> None:
    """Seed Python's, numpy's and Paddle's random generators."""
    random.seed(seed)
    np.random.seed(seed)
    paddle.seed(seed)
