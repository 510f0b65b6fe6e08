"""Measure round after round, each in all ways, and write the page anew after each.

    python -m benchmarks.online_load [--rounds 10] [--steps 30] [--out FOLDER] [--table FILE]

All rounds of a call are one process, which trains with 2 threads. A round that is finished is not run again as long as
this code is the same. It needs no data.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.common import kept, machine
from benchmarks.common.driver import run_all
from benchmarks.common.processes import ROOT
from benchmarks.common.worker import version_of
from benchmarks.online_load.page import page
from benchmarks.online_load.training import Training
from benchmarks.online_load.ways import order
from onion.checkpointing.atomic_files import replace_file
from onion.device import use_threads

THREADS = 2
CODE = ("client.py", "samples.py", "training.py", "watch.py", "ways.py")
PACKAGES = ("paddlepaddle", "fastapi", "uvicorn")


class Results:
    """The folder of results, a file a round.

    Args:
        folder: of them.
        steps: batches that count in each way.
        load: the machine's load average when the process began.
    """

    def __init__(self, folder: Path, steps: int, load: float) -> None:
        self.folder, self.steps, self.load = folder, steps, load

    @cached_property
    def _training(self) -> Training:
        return Training()

    def path(self, number: int) -> Path:
        """Return where the result of a round is, or will be."""
        code = [kept.sum_of(Path(__file__).with_name(name)) for name in CODE]
        return self.folder / kept.name_of(f"round-{number:02}", [code, self.steps])

    def read(self, number: int) -> dict[str, Any] | None:
        """Return the result of a round; None: it has not been run."""
        return kept.read(self.path(number))

    def run(self, number: int) -> bool:
        """Run a round, and keep its result."""
        ways = {way.name: self._training.run(way, number, self.steps) for way in order(number)}
        told = {
            "machine": machine.described(),
            "date": machine.today(),
            "versions": dict(zip(PACKAGES, map(version_of, PACKAGES), strict=True)),
            "load": self.load,
        }
        kept.keep(self.path(number), {"ways": ways, **told})
        return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; return the exit status."""
    options = _options(arguments)
    results = Results(options.out.absolute(), options.steps, os.getloadavg()[0])
    use_threads(THREADS)

    def write() -> None:
        found = [result for number in range(options.rounds) if (result := results.read(number)) is not None]
        replace_file(options.table, page(found, THREADS).encode())

    missing = [number for number in range(options.rounds) if results.read(number) is None]
    return run_all(missing, results.run, write, options.table)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="online_load", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=30, help="batches that count, in each way of a round")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "online_load", help="keeps the results")
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "online_load.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
