"""A side: whole training steps of an encoder on random ids: forward, backward, clipping, AdamW."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common.worker import Answer, serve
from onion import GradientMachine, ParameterUpdater, Runner
from onion.device import use_threads
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.tasks.batches import batch_of
from onion.tasks.classification import Classifier
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.testing import Batches

BASE = {"batch": 16, "length": 64, "layers": 2, "width": 256}
HEAD = 64
VOCABULARY = 30522
STEPS = 10**6


@cache
def network(layers: int, width: int) -> tuple[Classifier, Any]:
    """Return a classifier over an encoder of that shape, and its optimizer."""
    config = EncoderConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // HEAD,
        intermediate_size=4 * width,
        max_position_embeddings=512,
    )
    made = Classifier(Encoder(config), 2)
    return made, fine_tuning_optimizer(made, 5e-5, STEPS)


def batch(size: int, length: int) -> dict[str, Any]:
    """Return a batch of random ids, none of them padding."""
    random = np.random.default_rng(size * 1000 + length)
    ids = random.integers(1000, VOCABULARY, size=(size, length))
    types = np.zeros(length, np.int64)
    return batch_of([{"ids": each, "types": types, "label": place % 2} for place, each in enumerate(ids)])


def seconds_of_step(name: str, size: int) -> float:
    """Train one step with all but one size at the base."""
    shape = {**BASE, name: size}
    made, optimizer = network(shape["layers"], shape["width"])
    ready = batch(shape["batch"], shape["length"])
    runner = Runner(Batches([ready]), ParameterUpdater(optimizer), GradientMachine(made))
    begun = perf_counter()
    float(runner.run(passes=1).cost)
    return perf_counter() - begun


def prepare(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Run every size once.

    Args:
        job: ``threads``; ``axes``, name -> sizes.
    """
    use_threads(job["threads"])

    def work() -> Answer:
        """Return the seconds of a step, by axis and size."""
        return {name: {str(size): seconds_of_step(name, size) for size in sizes} for name, sizes in job["axes"].items()}

    work()
    return work


if __name__ == "__main__":
    serve(prepare, ("paddlepaddle",))
