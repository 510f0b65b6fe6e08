"""Measure rounds of all modes, and write the page after each.

    python -m benchmarks.online_load [--rounds 10] [--steps 30] [--out FOLDER] [--table FILE]

All rounds of a call run in one process, which trains with 2 threads. A finished round is not repeated as long as this
code is the same. It needs no data.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.frame.processes import THREADS
from benchmarks.frame.study import Study, sum_of
from benchmarks.frame.tables import MISSING, percentile, quartiles, table, where_and_when
from benchmarks.online_load.client import made_up
from benchmarks.online_load.training import BATCH, OFF, WAYS, Mode, Training, order
from onion.device import use_threads

CODE = ("client.py", "training.py")

Result = Mapping[str, Any]
"""Of a round: ``ways`` by name, and where and when."""

BUSY = 1.0  # the load average above which a machine has other work

HEAD = """\
# What the service costs the training, and its throughput

Made by `python -m benchmarks.online_load`; do not edit. A classifier with an encoder of MiniLM's shape (six layers, 384
wide, random weights) is trained with AdamW and {threads} threads on batches of {batch} synthetic samples, as long as
the sentences of SST-2. Each round trains on the same batches in all of these modes, one after the other, in an order
that changes from round to round. Clients are processes on the same machine, so their processor time is taken from the
training; clients that send or write samples do so as fast as they can.
"""

LOSSES = """\
## Speed of the training

`slower` is the additional time for the batches of a round compared with the service off; `processor` is the additional
processor time of the training process, including its service but not the clients. Values are medians over the rounds,
with quartiles in brackets.
"""

TAKEN = """\
## Throughput of samples

A sample is tokens and a label, {bytes} bytes on average. It is on disk when it is acknowledged, and waits behind those
that are trained on. Values are medians over the rounds, with quartiles in brackets.
"""

STEERED = """\
## Commands

The time from sending a `PATCH /settings` to its answer, which names the step after which it took effect: commands wait
for a boundary between two batches. They are sent at random times, one at a time.
"""


class OnlineLoad(Study[int]):
    """The rounds, each in all modes; a run is the number of a round."""

    name, text, table = "online_load", __doc__, "online_load.md"
    uses_data = False
    libraries = ("paddlepaddle", "fastapi", "uvicorn")

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        self.load = os.getloadavg()[0]
        use_threads(THREADS)

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=10)
        parser.add_argument("--steps", type=int, default=30, help="measured batches in each mode of a round")

    @cached_property
    def _training(self) -> Training:
        return Training()

    def runs(self) -> Sequence[int]:
        return range(self.given.rounds)

    def stem(self, run: int) -> str:
        return f"round-{run:02}"

    def record(self, run: int) -> Any:
        return [[sum_of(Path(__file__).with_name(name)) for name in CODE], self.given.steps]

    def execute(self, run: int) -> dict[str, Any]:
        ways = {way.name: self._training.run(way, run, self.given.steps) for way in order(run)}
        return {"ways": ways, "load": self.load}

    def page(self) -> str:
        return page([result for result in map(self.read, self.runs()) if result is not None])


def page(results: Sequence[Result]) -> str:
    """Return the whole page."""
    parts = [
        HEAD.format(threads=THREADS, batch=BATCH),
        LOSSES,
        table(["", "", "ms a batch", "slower", "processor"], _losses(results)) + "\n",
        TAKEN.format(bytes=_bytes()),
        table(["", "samples a second", "lots refused"], _taken(results)) + "\n",
        STEERED,
        table(["commands", "p50, ms", "p99, ms", "ms a batch", "refused"], _commands(results)) + "\n",
        _where(results),
    ]
    return "\n".join(part for part in parts if part)


def more(results: Sequence[Result], name: str, what: Callable[[Result, str], float]) -> list[float]:
    """Return by what fraction the batches of each round took more in one mode than with the service off."""
    return [what(result, name) / what(result, OFF.name) - 1 for result in results]


def _seconds(result: Result, name: str) -> float:
    return float(sum(result["ways"][name]["batches"]))


def _processor(result: Result, name: str) -> float:
    return float(result["ways"][name]["processor"])


def _losses(results: Sequence[Result]) -> Iterator[list[str]]:
    for way in WAYS:
        shares = [more(results, way.name, what) for what in (_seconds, _processor)]
        cells = ["" if way is OFF else _spread([100 * each for each in share], 1, " %") for share in shares]
        yield [way.name, way.text, f"{1000 * _batch(results, way):.0f}" if results else MISSING, *cells]


def _batch(results: Sequence[Result], way: Mode) -> float:
    return statistics.median(seconds for result in results for seconds in result["ways"][way.name]["batches"])


def _taken(results: Sequence[Result]) -> Iterator[list[str]]:
    for way in WAYS:
        if way.client[:1] in (("post",), ("write",)):
            told = [result["ways"][way.name]["client"] for result in results]
            rates = [each["taken"] / each["seconds"] for each in told]
            yield [way.name, _spread(rates, 0), str(sum(each["refused"] for each in told))]


def _commands(results: Sequence[Result]) -> Iterator[list[str]]:
    for way in WAYS:
        if way.client[:1] == ("steer",):
            told = [result["ways"][way.name]["client"] for result in results]
            took = [1000 * seconds for each in told for seconds in each["seconds"]]
            figures = [f"{percentile(took, share):.0f}" if took else MISSING for share in (50, 99)]
            batch = f"{1000 * _batch(results, way):.0f}" if results else MISSING
            yield [str(len(took)), *figures, batch, str(sum(each["refused"] for each in told))]


def _spread(values: Sequence[float], digits: int, unit: str = "") -> str:
    """Return the median, and the quartiles if there are several values."""
    if not values:
        return MISSING
    median = f"{statistics.median(values):,.{digits}f}{unit}"
    if len(values) == 1:
        return median
    low, high = quartiles(values)
    return f"{median} ({low:,.{digits}f} to {high:,.{digits}f})"


def _bytes() -> int:
    """Return the mean length of a sample as JSON."""
    return round(statistics.mean(len(json.dumps(each)) for each in made_up(1000, seed=7)))


def _where(results: Sequence[Result]) -> str:
    """Return where and when it ran, how many rounds, and whether the machine had other work."""
    if not results:
        return ""
    loads = [result["load"] for result in results]
    busy = (
        f" The machine had other work (a load average of up to {max(loads):.1f} before the start), which changed from "
        "run to run: differences within the quartiles are not significant, and with few rounds none is."
    )
    steps = len(results[0]["ways"][OFF.name]["batches"])
    rounds = f"Rounds: {len(results)}, of {steps} batches in each mode."
    return f"{where_and_when(results)} {rounds}{busy if max(loads) > BUSY else ''}\n"


if __name__ == "__main__":
    sys.exit(OnlineLoad.main())
