"""onion: what ``onion train`` runs, without tests and checkpoints, which the other sides do not make either.

And what the matrix products of a training step take by themselves: the machine's own speed at an encoder's shapes,
those of the linear layers, forward and both ways back. Attention's own products are left out, which makes the share of
a step that this is a little smaller than it could be.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.finetune.work import Clock, Job
from benchmarks.frame.processes import THREADS
from benchmarks.frame.worker import Answer
from onion import DataProvider, Observer, Runner, Saver, Tester
from onion.device import paddle, use_threads
from onion.tasks.data.data_files import DataFiles
from onion.tasks.data.features.cache import cached_features, fitted_task
from onion.tasks.finetune import fine_tune
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import get_task

LIBRARIES = ("paddlepaddle",)
TIMES = 5
Product = Callable[[], Any]


def losses(job: Job) -> list[float]:
    found: list[float] = []
    with tempfile.TemporaryDirectory() as room:
        prepared = _prepared(job, "few", "still", Path(room), Clock())
        with np.load(job["head"]) as head:
            prepared.network.classifier.set_state_dict(dict(head))
        collate = partial(prepared.task.collate, pad_id=prepared.tokenizer.pad_id)
        in_order = DataProvider(prepared.train_set, job["batch_size"], collate=collate)
        watched = Observer(on_batch_end=lambda state: found.append(float(state.loss)))  # type: ignore[arg-type]
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
        tokens = int(sum(prepared.train_set.lengths)) // steps  # type: ignore[union-attr]  # not streamed
    config = prepared.network.encoder.config
    return {
        "seconds": seconds,
        "steps": steps,
        "step": (ends[-1] - ends[0]) / (steps - 1),
        "products": seconds_of_products(tokens, config.hidden_size, config.intermediate_size, config.num_hidden_layers),
    }


def _prepared(job: Job, file: str, folder: str, room: Path, clock: Clock) -> fine_tune.Job:
    """Do what ``training.Job.prepare`` does, with no features from before and the clock stopped for what is loaded."""
    os.environ["ONION_HOME"] = str(room)
    settings = Settings(
        task="classification",
        train=job[file],
        dev=job[file],
        encoder=job[folder],
        passes=1,
        warmup_ratio=0.0,
        learning_rate=job["lr"],
        max_grad_norm=job["clip"],
        options={"max_length": job["max_length"]},
        **{name: job[name] for name in ("batch_size", "weight_decay", "seed")},
    )
    with clock.stopped():
        use_threads(THREADS)
        start = Initialization.of(settings)
        tokenizer = start.tokenizer()
    files = DataFiles.of(settings.train, settings.dev, settings.columns, settings.seed)
    task = fitted_task(get_task(settings.task, settings.options), files.train)
    examples = cached_features(task, files.train, tokenizer)
    with clock.stopped():
        seed_everything(settings.seed)
        network: Any = start.network(task)
    return fine_tune.Job(settings, files, task, tokenizer, network, examples, examples)


def _onion(prepared: fine_tune.Job, room: Path, watched: Observer) -> Runner:
    return Runner(watched, *prepared.onion(room / "run").without(Saver, Tester).items)


def seconds_of_products(tokens: int, hidden: int, inner: int, layers: int) -> float:
    """Return the seconds of the products of one step: the median time of one layer, for each layer."""
    with paddle().no_grad():
        products = [product for shape in shapes(hidden, inner) for product in products_of(tokens, *shape)]
        _run(products)  # warms up
        return layers * statistics.median(_run(products) for _ in range(TIMES))


def shapes(hidden: int, inner: int) -> list[tuple[int, int]]:
    """Return width in and width out of a layer's linear layers: q, k, v, out, and the two of its feed-forward part."""
    return [(hidden, hidden)] * 4 + [(hidden, inner), (inner, hidden)]


def products_of(tokens: int, width_in: int, width_out: int) -> Iterator[Product]:
    """Yield a linear layer's product forward, that for the gradient of what went in, and that for its weight's."""
    x = paddle().rand([tokens, width_in])
    weight = paddle().rand([width_in, width_out])
    gradient = paddle().rand([tokens, width_out])
    matmul = paddle().matmul
    yield lambda: matmul(x, weight)
    yield lambda: matmul(gradient, weight, transpose_y=True)
    yield lambda: matmul(x, gradient, transpose_x=True)


def _run(products: list[Product]) -> float:
    begun = time.perf_counter()
    for product in products:
        product()
    return time.perf_counter() - begun
