"""Measure round after round, each in all ways, and write the page after each.

    python -m benchmarks.online_load [--rounds 10] [--steps 30] [--out FOLDER] [--table FILE]

All rounds of a call are one process, which trains with 2 threads. A round that is finished is not run again as long as
this code is the same. It needs no data.
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

BUSY = 1.0
"""The load average above which a machine has other work."""

HEAD = """\
# What a service costs a training, and what it bears meanwhile

Made by `python -m benchmarks.online_load`; not edited by hand. A classifier over an encoder of MiniLM's shape (six
layers, 384 wide, random weights) is trained with AdamW and {threads} threads on batches of {batch} made-up samples, as
long as SST-2's sentences. In every round the same batches are trained on in all of these ways, one after the other; the
order changes from round to round. Clients are processes on the same machine, so what they compute is taken from the
training too; those that send samples, or write them, go as fast as they can.
"""

LOSSES = """\
## Speed of the training

`slower` is by how much more time the batches of a round took than with the service off, and `processor` by how much
more processor time the process of the training took for them, its service included and clients not: medians over the
rounds, and in brackets the quartiles.
"""

TAKEN = """\
## Samples taken in meanwhile

Samples are tokens and a label, {bytes} bytes each in the mean. They are on the disk when the answer comes, and wait
behind those that are trained on. Medians over the rounds, in brackets the quartiles.
"""

STEERED = """\
## Commands

From sending a `PATCH /settings` to its answer, which tells the step after which it took effect: it waits for the border
between two batches. Commands come at random moments, one at a time.
"""


class OnlineLoad(Study[int]):
    """The rounds, each in all ways; a run is the number of a round."""

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
        parser.add_argument("--steps", type=int, default=30, help="batches that count, in each way of a round")

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
    """Return by what part the batches of each round took more of something in one way than with the service off."""
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
    """Return how long a sample is as JSON."""
    return round(statistics.mean(len(json.dumps(each)) for each in made_up(1000, seed=7)))


def _where(results: Sequence[Result]) -> str:
    """Return where and when it ran, how often, and whether the machine had other work."""
    if not results:
        return ""
    loads = [result["load"] for result in results]
    busy = (
        f" The machine had other work (a load average of up to {max(loads):.1f} before the start), which changed from "
        "run to run: what differs by less than the quartiles do says nothing, and with few rounds nothing does."
    )
    steps = len(results[0]["ways"][OFF.name]["batches"])
    rounds = f"Rounds: {len(results)}, of {steps} batches in each way."
    return f"{where_and_when(results)} {rounds}{busy if max(loads) > BUSY else ''}\n"


if __name__ == "__main__":
    sys.exit(OnlineLoad.main())
