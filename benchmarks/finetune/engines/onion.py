"""onion: what ``onion train`` runs, without tests and checkpoints, which the other sides do not make either."""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.sides import THREADS
from benchmarks.common.worker import Answer
from benchmarks.finetune import products
from benchmarks.finetune.work import Clock, Job
from onion import DataProvider, Observer, Runner, Saver, Tester
from onion.device import use_threads
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.fit_cache import fitted_task
from onion.tasks.finetune import fine_tune
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import get_task

LIBRARIES = ("paddlepaddle",)


def losses(job: Job) -> list[float]:
    """Return the losses of the first batches."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as room:
        prepared = _prepared(job, "few", "still", Path(room), Clock())
        with np.load(job["head"]) as head:
            prepared.network.classifier.set_state_dict(dict(head))
        collate = partial(prepared.task.collate, pad_id=prepared.tokenizer.pad_id)
        in_order = DataProvider(prepared.train_set, job["batch_size"], collate=collate)
        watched = Observer(on_batch_end=lambda state: found.append(float(state.loss)))
        _onion(prepared, Path(room), watched).replace(DataProvider, in_order).run(passes=1)
    return found


def train(job: Job) -> Answer:
    """Train; and time the matrix products of a step by themselves.

    Returns:
        ``seconds`` and ``steps`` of the training; ``step``, the seconds between the ends of its first and its last
        batch, for each; ``products``, the seconds of the products of the mean batch.
    """
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as room:
        clock = Clock()
        prepared = _prepared(job, "train", "folder", Path(room), clock)
        watched = Observer(on_batch_end=lambda state: ends.append(time.perf_counter()))
        steps = _onion(prepared, Path(room), watched).run(passes=1).step
        seconds = clock.seconds()
        tokens = int(sum(prepared.train_set.lengths)) // steps
    config = prepared.network.encoder.config
    return {
        "seconds": seconds,
        "steps": steps,
        "step": (ends[-1] - ends[0]) / (steps - 1),
        "products": products.seconds(tokens, config.hidden_size, config.intermediate_size, config.num_hidden_layers),
    }


def _prepared(job: Job, file: str, folder: str, room: Path, clock: Clock) -> fine_tune.Job:
    """Do what ``training.Job.prepare`` does, with no features from before and the clock stopped for what is loaded."""
    os.environ["ONION_HOME"] = str(room)
    settings = Settings(
        task="classify",
        train=job[file],
        dev=job[file],
        encoder=job[folder],
        passes=1,
        warmup=0.0,
        options={"max_length": job["max_length"]},
        **{name: job[name] for name in ("batch_size", "lr", "weight_decay", "clip", "seed")},
    )
    with clock.stopped():
        use_threads(THREADS)
        start = Initialization.of(settings)
        tokenizer = start.tokenizer()
    task = fitted_task(get_task(settings.task, settings.options), settings.train)
    examples = cached_features(task, settings.train, tokenizer)
    with clock.stopped():
        fine_tune.seed_everything(settings.seed)
        network: Any = start.network(task)
    return fine_tune.Job(settings, task, tokenizer, network, examples, examples)


def _onion(prepared: fine_tune.Job, room: Path, watched: Observer) -> Runner:
    return Runner(watched, *prepared.onion(room / "run").without(Saver, Tester).items)
