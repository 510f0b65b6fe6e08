"""What gradient checkpointing and LoRA save of the memory of a training step, and what they cost in time.

python -m benchmarks.memory [--batch 32] [--length 128] [--layers 12] [--width 768] [--steps 2] [--rounds 3] [--keep]

Gradient checkpointing changes no bit of what is learned, which is checked before a figure is reported.
"""

from __future__ import annotations

import hashlib
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.frame.processes import THREADS, Side, turned
from benchmarks.frame.section import Benchmark, Figure, Section
from onion import GradientMachine, Observer, ParameterUpdater, Runner
from onion.device import use_threads
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.lora import add_lora
from onion.tasks.batches import batch_of
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.networks.classifier import Classifier
from onion.testing import Batches

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

LIBRARIES = ("paddlepaddle",)
VOCABULARY, HEAD, RANK = 30522, 64, 8
HOW = """\
Whole training steps (forward, backward, clipping, AdamW, dropout 0.1) of a classifier over an encoder with random
weights and the shape of BERT: {layers} layers of width {width}, batches of {batch} texts of {length} tokens without
padding, {threads} threads. Each side is a process of its own in each round. Reported are the processor time of the
median step, summed over the threads, and the peak memory of the process: libraries (some 300 MiB), weights and the
optimizer's state are included. LoRA has rank 8, at queries and values."""

SIDES = {
    "all parameters": {"recomputing": False, "lora": False},
    "all parameters, gradient checkpointing": {"recomputing": True, "lora": False},
    "LoRA": {"recomputing": False, "lora": True},
    "LoRA, gradient checkpointing": {"recomputing": True, "lora": True},
}


def measure(section: Section, given: Namespace) -> None:
    shape = {name: getattr(given, name) for name in ("batch", "length", "layers", "width", "steps")}
    jobs = {name: {**shape, **job} for name, job in SIDES.items()}
    sides = [Side(name, "benchmarks.memory", job, stays=False) for name, job in jobs.items()]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SIDES}
    for number in range(given.rounds):
        for side in turned(sides, number):
            found[side.name].append({**side.round(), "peak": side.last["peak_bytes"]})
    _require_equal(found)
    section.how = HOW.format(**shape, threads=THREADS)
    section.figures += figures_of(found)
    section.add_versions(sides)


def _require_equal(found: Mapping[str, list[dict[str, Any]]]) -> None:
    names = list(found)
    for kept, recomputed in ((names[0], names[1]), (names[2], names[3])):
        if len({each["bits"] for each in found[kept] + found[recomputed]}) > 1:
            raise SystemExit(f"{recomputed}: other bits than without gradient checkpointing")


def figures_of(found: Mapping[str, list[dict[str, Any]]]) -> list[Figure]:
    """Return time and memory of each side, and both beside those of the first one."""
    first, *others = found
    figures = []
    for name, rounds in found.items():
        figures.append(Figure(f"processor time of a step: {name}", "s", [each["seconds"] for each in rounds]))
        figures.append(Figure(f"peak memory: {name}", "MiB", [each["peak"] / 2**20 for each in rounds], digits=0))
    for what, key in (("time", "seconds"), ("memory", "peak")):
        for name in others:
            pairs = zip(found[name], found[first], strict=True)
            figures.append(
                Figure(f"{what}: {name}, beside {first}", "times", [one[key] / all_[key] for one, all_ in pairs])
            )
    return figures


def prepare(job: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    """Prepare a side: a function that trains some steps and returns seconds a step, and a checksum of the weights."""
    use_threads(THREADS)
    paddle.seed(1)
    network = _network(job)
    optimizer = fine_tuning_optimizer(network, 5e-5, 10**6)
    random = np.random.default_rng(0)
    batches = [_batch(random, job["batch"], job["length"]) for _ in range(job["steps"] + 1)]

    def work() -> dict[str, Any]:
        ends: list[float] = []
        noting = Observer(on_batch_end=lambda state: ends.append(process_time()))
        Runner(noting, Batches(batches), ParameterUpdater(optimizer), GradientMachine(network)).run(passes=1)
        return {"seconds": median(after - before for before, after in pairwise(ends)), "bits": _checksum(network)}

    return work


def _network(job: Mapping[str, Any]) -> Classifier:
    config = EncoderConfig(
        vocab_size=VOCABULARY,
        hidden_size=job["width"],
        num_hidden_layers=job["layers"],
        num_attention_heads=max(1, job["width"] // HEAD),
        intermediate_size=4 * job["width"],
        max_position_embeddings=512,
    )
    network = Classifier(Encoder(config), 2)
    network.encoder.gradient_checkpointing = job["recomputing"]
    if job["lora"]:
        add_lora(network, RANK)
    return network


def _batch(random: np.random.Generator, size: int, length: int) -> dict[str, Any]:
    ids = random.integers(1000, VOCABULARY, size=(size, length))
    types = np.zeros(length, np.int64)
    return batch_of([{"ids": each, "types": types, "label": place % 2} for place, each in enumerate(ids)])


def _checksum(network: paddle.nn.Layer) -> str:
    found = hashlib.sha256()
    for parameter in network.parameters():
        found.update(parameter.numpy().tobytes())
    return found.hexdigest()


BENCHMARK = Benchmark("memory", "Memory", HOW, __doc__, measure, rounds=3)
for name, default in (("batch", 32), ("length", 128), ("layers", 12), ("width", 768), ("steps", 2)):
    BENCHMARK.parser.add_argument(f"--{name}", type=int, default=default)
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
