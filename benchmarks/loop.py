"""What the onion costs a batch, measured against the same loop written by hand.

    python benchmarks/loop.py [--rounds 15] [--batches 2000] [--clock wall]

Four measurements, in microseconds a batch:

    bare        forward, cost, backward, optimizer.step, clear_grad of a Linear(8, 1), in a plain for loop
    onion       the same as DataProvider, ParameterUpdater and GradientMachine
    ten items   the same inside ten further items, all between their periods: Progress, Logger, Saver, Tester,
                Evaluator, EarlyStop and four Observers
    ring        one more item whose on_batch is a bare ``yield`` (0 against 20 of them, batches that do no work)

All sides do the same work on the data: a list holds ready batches of numpy arrays, and each side turns them into
tensors once a batch. For the onion the list is a source whose examples are batches (``batch_size=1``, ``collate``
unpacks, no prefetching), so what DataProvider itself costs is counted as the onion's. The bare loop calls the same
network, and clears gradients as ParameterUpdater does (``set_to_zero=False``). Clocks start before the first batch of a
pass and stop after its last, so what happens once a run (opening files, the last checkpoint) is not in the figures.

The three loops take turns, round after round, and the differences are taken within each round: what slows the machine
for a while then slows all of them. Before a time is told, the parameters that all sides end with are compared to the
bit. Medians and quartiles are over the rounds. The last line is JSON. On a machine that others use too,
``--clock cpu`` counts the processor time of the loop's thread only.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from onion import (
    DataProvider,
    EarlyStop,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    Observer,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    State,
    Tester,
    Way,
)
from onion.device import paddle as load_paddle
from onion.device import use_threads
from onion.testing import Batches

paddle: Any = load_paddle()

NEVER = 10**9
THREADS = 2
CLOCKS = {"wall": perf_counter, "cpu": thread_time}
RINGS = 20
GOALS = {"onion_minus_bare_us": 15.0, "ten_items_minus_bare_us": 30.0, "ring_us": 0.5}

clock = perf_counter

Measured = tuple[float, bytes]
"""Seconds in the loop, and the final parameters."""


class Regression(paddle.nn.Linear):
    """Linear(8, 1) on a batch."""

    def forward(self, batch: dict[str, Any]) -> Any:
        """Predict y from x."""
        return super().forward(batch["x"])

    def cost(self, outputs: Any, batch: dict[str, Any]) -> Any:
        """Return the mean squared error."""
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


class Stopwatch(RunnerItem):
    """Time the batches of a pass; as the innermost item it starts just before the first one."""

    def on_pass(self, state: State) -> Way:
        """Start and stop."""
        gc.collect()
        gc.disable()
        begun = clock()
        yield
        self.seconds = clock() - begun
        gc.enable()


class Pass(RunnerItem):
    """A ring that does nothing on both ways."""

    def on_batch(self, state: State) -> Way:
        """Do nothing."""
        yield


class Counter:
    """The cheapest metric: it counts batches and reads nothing."""

    def reset(self) -> None:
        """Begin at 0."""
        self.count = 0

    def update(self, outputs: Any, batch: Any) -> None:
        """Count one."""
        self.count += 1

    def result(self) -> dict[str, float]:
        """Return the count."""
        return {"batches": self.count}


def ready_batches(count: int) -> list[dict[str, Any]]:
    """Return batches of 32 examples, always the same."""
    random = np.random.default_rng(0)
    x = random.normal(size=(count, 32, 8)).astype("float32")
    y = random.normal(size=(count, 32, 1)).astype("float32")
    return [{"x": a, "y": b} for a, b in zip(x, y, strict=True)]


def begin() -> tuple[Regression, Any]:
    """Return a new network and its optimizer, always the same."""
    paddle.seed(0)
    network = Regression(8, 1)
    return network, paddle.optimizer.SGD(0.01, parameters=network.parameters())


def parameters(network: Regression) -> bytes:
    """Return the bits of all parameters."""
    return b"".join(parameter.numpy().tobytes() for parameter in network.parameters())


def bare(batches: list[dict[str, Any]]) -> Measured:
    """Train by hand."""
    network, optimizer = begin()
    to_tensor, mse_loss = paddle.to_tensor, paddle.nn.functional.mse_loss
    network.train()
    gc.collect()
    gc.disable()
    begun = clock()
    for batch in batches:
        tensors = {"x": to_tensor(batch["x"]), "y": to_tensor(batch["y"])}
        cost = mse_loss(network(tensors), tensors["y"])
        cost.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    seconds = clock() - begun
    gc.enable()
    return seconds, parameters(network)


def onion(
    batches: list[dict[str, Any]], around: Callable[[Regression], list[RunnerItem]] = lambda network: []
) -> Measured:
    """Train by an onion, with further items around it."""
    network, optimizer = begin()
    stopwatch = Stopwatch()
    Runner(
        *around(network),
        DataProvider(batches, 1, collate=lambda examples: examples[0], prefetch=0),
        ParameterUpdater(optimizer),
        GradientMachine(network),
        stopwatch,
    ).run(passes=1)
    return stopwatch.seconds, parameters(network)


def ten_items(batches: list[dict[str, Any]]) -> Measured:
    """Train by an onion with ten more items, none of which is due."""

    def around(network: Regression) -> list[RunnerItem]:
        test = Runner(DataProvider(batches[:1], 1, prefetch=0), Forward(network))
        return [
            Progress(seconds=NEVER, file=io.StringIO(), quiet=False),
            Saver(folder, every=NEVER),
            Logger(Path(folder) / "metrics.jsonl", every=NEVER),
            EarlyStop("tester.accuracy"),
            Tester(test, every=NEVER),
            Evaluator(Counter()),
            Observer(on_batch_begin=lambda state: None),
            Observer(on_batch_end=lambda state: None),
            Observer(on_batch_begin=lambda state: None, on_batch_end=lambda state: None),
            Observer(on_pass_begin=lambda state: None, on_batch_end=lambda state: None),
        ]

    with tempfile.TemporaryDirectory() as folder:
        return onion(batches, around)


def rings(count: int, batches: int) -> float:
    """Return the seconds of a loop over nothing with so many rings."""
    stopwatch = Stopwatch()
    Runner(*(Pass() for _ in range(count)), Batches(batches), stopwatch).run(passes=1)
    return stopwatch.seconds


def measure(batches: list[dict[str, Any]]) -> dict[str, float]:
    """Measure one round; return microseconds a batch.

    Raises:
        SystemExit: the sides did not compute the same.
    """
    a, b, c = bare(batches), onion(batches), ten_items(batches)
    if not a[1] == b[1] == c[1]:
        raise SystemExit("the loops end with different parameters: not the same work, so no times are told")
    many = 10 * len(batches)
    without, with_rings = rings(0, many), rings(RINGS, many)
    each = 1e6 / len(batches)
    return {
        "bare_us": a[0] * each,
        "onion_us": b[0] * each,
        "ten_items_us": c[0] * each,
        "onion_minus_bare_us": (b[0] - a[0]) * each,
        "ten_items_minus_bare_us": (c[0] - a[0]) * each,
        "ring_us": (with_rings - without) * 1e6 / many / RINGS,
    }


def main() -> None:
    """Measure and tell."""
    global clock
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batches", type=int, default=2000, help="a round and side")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    settings = parser.parse_args()
    clock = CLOCKS[settings.clock]
    use_threads(THREADS)
    batches = ready_batches(settings.batches)
    measure(batches[:200])  # warms everything up, and compares before anything is told
    rounds = [measure(batches) for _ in range(settings.rounds)]

    print(
        f"microseconds a batch ({settings.clock} clock), {settings.rounds} rounds of {settings.batches} batches, "
        f"{THREADS} threads, same final parameters"
    )
    print(f"{'':<24}{'median':>9}{'quartiles':>20}{'goal':>8}")
    medians: dict[str, float] = {}
    for name in rounds[0]:
        values = [each[name] for each in rounds]
        low, median, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
        medians[name] = round(median, 3)
        goal = f"{GOALS[name]:>8g}" if name in GOALS else ""
        label = name.removesuffix("_us").replace("_", " ")
        print(f"{label:<24}{median:>9.2f}{f'{low:.2f} to {high:.2f}':>20}{goal}")
    print(json.dumps({**medians, "rounds": settings.rounds}))


if __name__ == "__main__":
    main()
