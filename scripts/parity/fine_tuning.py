"""A short fine-tuning of MiniLM: the loss of every step, without dropout, beside transformers' Trainer's recipe.

Encoder, head, gradients, clipping, AdamW with and without weight decay, warm-up and decay: a mistake in any of them
shows in the losses of the steps after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onion import GradientMachine, Observer, ParameterUpdater, Runner
from onion.models import hub
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.batches import batch_of
from onion.tasks.data.texts import examples_of
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.networks.classifier import Classifier
from onion.testing import Batches
from scripts.parity.common import Row, own_lines, run_reference
from scripts.parity.encoders import difference

RECIPE = {"warmup": 0.1, "weight_decay": 0.01, "clip": 1.0}
SETTINGS = {"batch_size": 8, "passes": 3, "lr": 5e-5, "max_length": 64, **RECIPE}
EXAMPLES, LABELS = 80, 3


def compare(folder: Path) -> Iterator[Row]:
    """Fine-tune MiniLM on lines of the license by both."""
    model = hub.fetch("minilm")
    chance = np.random.default_rng(4)
    job = {
        **SETTINGS,
        "texts": own_lines()[:EXAMPLES],
        "labels": chance.integers(0, LABELS, EXAMPLES).tolist(),
        "head": chance.normal(0, 0.02, (LABELS, 384)).astype(np.float32).tolist(),
    }
    asked = folder / "job.json"
    asked.write_text(json.dumps(job), encoding="utf-8")
    run_reference("transformers", "fine-tuning", model, asked, folder / "losses.npz")
    theirs = dict(np.load(folder / "losses.npz"))
    found = difference(np.array(_losses(model, job)), theirs["losses"])
    what = f"fine-tuning minilm, {len(theirs['losses'])} steps"
    yield Row(what, str(theirs["maker"]), "losses", found)


def _losses(model: Path, job: dict[str, Any]) -> list[float]:
    encoder = Encoder.from_pretrained(model, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    network = Classifier(encoder, LABELS)
    network.classifier.weight.set_value(np.array(job["head"], np.float32).T)
    batches = _batches(Tokenizer.from_pretrained(model), job)
    steps = job["passes"] * len(batches)
    optimizer = fine_tuning_optimizer(network, job["lr"], steps, job["warmup"], job["weight_decay"], job["clip"])
    losses: list[float] = []
    watch = Observer(on_batch_end=lambda state: losses.append(float(state.loss)))  # type: ignore[arg-type]
    Runner(Batches(batches), watch, ParameterUpdater(optimizer), GradientMachine(network)).run(passes=job["passes"])
    return losses


def _batches(tokenizer: Tokenizer, job: dict[str, Any]) -> list[dict[str, Any]]:
    examples = examples_of(tokenizer(job["texts"], max_length=job["max_length"]))
    for example, label in zip(examples, job["labels"], strict=True):
        example["label"] = label
    size = job["batch_size"]
    return [batch_of(examples[begin : begin + size]) for begin in range(0, len(examples), size)]
