"""How long a checkpoint holds the loop up: written within the loop, beside written in the background.

    python -m benchmarks.saving [--encoder minilm] [--batch 32] [--length 32] [--steps 12] [--every 4] [--rounds 5]
        [--keep]

Both ways the folders hold the same bytes at the end, which is checked before a time is reported.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from argparse import Namespace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.frame.processes import turned
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.frame.worker import version_of
from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner, Saver
from onion.checkpointing import checkpoint
from onion.device import use_threads
from onion.models.encoder import Encoder

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

HOW = """\
An encoder with AdamW is trained on random tokens ({batch} texts of {length}) and saved every {every} steps, in turns
with `Saver(background=False)` and `True`, in one process; which one begins alternates. Told are the median step without
a save, and by how much the median step with one is longer; where the thread takes cores from the loop after that, the
steps without a save are longer too. A checkpoint has {size:.0f} MiB: weights, and AdamW's two moments of each."""

WAYS = ("in the loop", "in the background")
FIRST_ID = 1000
"""The first token of the BERT vocabularies that is no special one."""


class Pooled(paddle.nn.Layer):
    """An encoder whose loss is the size of what it gives: enough to have gradients everywhere."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, batch: Any) -> paddle.Tensor:
        return self.encoder(batch).sequence_output

    def loss(self, outputs: paddle.Tensor, batch: Any) -> paddle.Tensor:
        return (outputs**2).mean()


def measure(section: Section, given: Namespace) -> None:
    use_threads()
    encoder = Encoder.from_pretrained(given.encoder)
    random = np.random.default_rng(0)
    batches = random.integers(FIRST_ID, encoder.config.vocab_size, size=(given.steps, given.batch, given.length))
    rounds, size = [], 0
    for number in range(given.rounds):
        with tempfile.TemporaryDirectory() as room:
            folders = {way: Path(room) / way for way in WAYS}
            order = turned(WAYS, number)
            found = {way: _run(encoder, batches, folders[way], way == WAYS[1], given.every) for way in order}
            _require_equal(*folders.values())
            newest = checkpoint.folder_of(folders[WAYS[0]], checkpoint.steps_in(folders[WAYS[0]])[-1])
            size = sum(file.stat().st_size for file in newest.iterdir())
        rounds.append(found)
    section.how = HOW.format(batch=given.batch, length=given.length, every=given.every, size=size / 2**20)
    section.figures += figures_of(rounds)
    section.versions["paddlepaddle"] = version_of("paddlepaddle")


def _run(encoder: Encoder, batches: np.ndarray, folder: Path, background: bool, every: int) -> tuple[float, float]:
    """Train a fresh copy; return the median seconds of a step without a save, and how much longer one with it takes."""
    paddle.seed(0)
    network = Pooled(Encoder(encoder.config))
    network.encoder.set_state_dict(encoder.state_dict())
    network.encoder.eval()
    optimizer = paddle.optimizer.AdamW(1e-5, parameters=network.parameters())
    ends: list[float] = []
    Runner(
        Observer(on_batch_end=lambda state: ends.append(perf_counter())),
        Saver(folder, every=every, async_save=background),
        DataProvider(list(batches), 1, collate=lambda examples: examples[0], prefetch=0),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    ).run(passes=1)
    took = {step: after - before for step, (before, after) in enumerate(pairwise(ends), start=2)}
    saved = [seconds for step, seconds in took.items() if step % every == 0 and step < len(batches)]
    plain = [seconds for step, seconds in took.items() if step % every]
    return statistics.median(plain), statistics.median(saved) - statistics.median(plain)


def _require_equal(one: Path, other: Path) -> None:
    first, second = checkpoint.newest(one), checkpoint.newest(other)
    assert first is not None
    assert second is not None
    for item, saved in first.items.items():
        for key, value in saved.items():
            assert np.array_equal(value, second.items[item][key]), f"{item}/{key}"


def figures_of(rounds: list[dict[str, tuple[float, float]]]) -> list[Figure]:
    return [
        Figure(f"{what}, {way}", "ms", [1000 * found[way][place] for found in rounds], digits=1)
        for place, what in enumerate(("a step", "a step with a save is longer by"))
        for way in WAYS
    ]


BENCHMARK = Benchmark("saving", "Saving", HOW, __doc__, measure, rounds=5)
BENCHMARK.parser.add_argument("--encoder", default="minilm", help="a known name or a folder")
for name, default in (("batch", 32), ("length", 32), ("steps", 12), ("every", 4)):
    BENCHMARK.parser.add_argument(f"--{name}", type=int, default=default)
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
