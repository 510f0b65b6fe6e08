"""Data: texts to features, features to batches, and the start of a run, beside transformers.

    python -m benchmarks.data [--rounds 5] [--starts 3] [--steps 100] [--data DIR] [--only texts cache starts training]

Texts become ids on both sides in turns, after both were seen to find the same ids. Trainings are of SST-2 with MiniLM.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.common.driver import DATA, no_data
from benchmarks.common.measured import Figure, Measured, versions_of
from benchmarks.common.options import parser_of
from benchmarks.common.rounds import Round, alternate
from benchmarks.common.sides import THREADS, Side, all_ready
from benchmarks.data.figures import ONION, PEER, of_cache, of_starts, of_texts, of_training, refuse_difference
from benchmarks.data.sets import MAX_LENGTH, SETS, SST2, Set
from onion.models import hub

PARTS = ("texts", "cache", "starts", "training")
HOW = f"""\
Texts: training files to token ids of at most {MAX_LENGTH}, in one process a side; transformers' fast tokenizer takes
lists of 1,000 texts, onion makes whole features (file read and checked, labels numbered), with a tokenizer that has
seen no text before. The ratios have transformers' tokenizer alone below the line, its texts being in a list already.
All else is a fine-tuning of MiniLM on SST-2 by batches of 32 of similar length, as `onion train` and the Trainer of
benchmarks/results do it. Both sides have {THREADS} threads."""
NOTES = (
    "onion asks the library once for each character and word (models/tokenization/word_cache.py); transformers takes "
    "every text through it.",
    "The time to the first batch is from the start of the process; transformers' has no cache of ids, so it tokenises.",
)
PEER_ENVIRONMENT = "transformers"


def main(arguments: list[str] | None = None) -> int:
    """Measure and tell; return the exit status."""
    parser = parser_of("data", __doc__, rounds=5)
    for name, default, text in (
        ("starts", 3, "rounds of starts"),
        ("steps", 100, "of the training whose memory is told"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of data sets")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, metavar="PART", help=f"of {PARTS}")
    given = parser.parse_args(arguments)
    if no_data(given.data, "bench"):
        return 2
    bench = Bench(given.data)
    for part in given.only:
        bench.figures += {
            "texts": lambda: bench.texts(given.rounds),
            "cache": lambda: bench.cache(given.rounds),
            "starts": lambda: bench.starts(given.starts),
            "training": lambda: bench.training(given.steps),
        }[part]()
    measured = Measured("data", "Data", HOW, given.rounds, bench.figures, list(NOTES), versions_of(bench.lasts))
    measured.tell(given.keep)
    return 0


class Bench:
    """The parts of the benchmark, which share their folder of data.

    Args:
        data: the folder.

    Attributes:
        figures: found so far.
        lasts: what sides told at their ends.
    """

    def __init__(self, data: Path) -> None:
        self.data = data.resolve()
        self.figures: list[Figure] = []
        self.lasts: list[dict[str, Any]] = []

    def texts(self, rounds: int) -> list[Figure]:
        """Tokenise in turns, each set on its own."""
        with tempfile.TemporaryDirectory() as room:
            return [figure for each in SETS for figure in self._set(each, Path(room), rounds)]

    def _set(self, each: Set, room: Path, rounds: int) -> Iterator[Figure]:
        folder = each.tokenizer(self.data, room)
        job = {"file": str(self.data / each.file), "tokenizer": str(folder), "max_length": MAX_LENGTH}
        threads = {"RAYON_NUM_THREADS": str(THREADS)}
        sides = [
            Side(ONION, "benchmarks.data.by_onion", job, environment=threads),
            Side(PEER, "benchmarks.data.by_transformers", job, PEER_ENVIRONMENT, threads),
        ]
        with all_ready(sides):
            refuse_difference(each.title, alternate(sides, 1, digest=True)[0])
            told = alternate(sides, rounds)
        self.lasts += [side.last for side in sides]
        return of_texts(each.title, told)

    def cache(self, rounds: int) -> list[Figure]:
        """Read cached features; the first round, in which they may be made, is not told."""
        side = Side(ONION, "benchmarks.data.cached", self.job())
        with all_ready([side]):
            told = alternate([side], 1 + rounds)[1:]
        self.lasts.append(side.last)
        return [of_cache(told)]

    def starts(self, rounds: int) -> list[Figure]:
        """Begin trainings and end them with the first step; the first round warms the cache of files."""
        told = [self._trained(1)[0] for _ in range(1 + rounds)]
        return list(of_starts(told[1:], [seconds_of_help() for _ in range(1 + rounds)][1:]))

    def training(self, steps: int) -> list[Figure]:
        """Train once on each side."""
        told, peaks = self._trained(steps)
        return list(of_training([told], [peaks]))

    def _trained(self, steps: int) -> tuple[Round, dict[str, int]]:
        """Train by both sides, one after the other in processes of their own; return what they tell, and peaks."""
        told: Round = {}
        peaks: dict[str, int] = {}
        for name, module, peer in (
            (ONION, "benchmarks.data.training", None),
            (PEER, "benchmarks.data.hugging_face_training", PEER_ENVIRONMENT),
        ):
            side = Side(name, module, {**self.job(), "begun": time.time()}, peer)
            with all_ready([side]):
                told[name] = side.round(steps=steps)
            peaks[name] = side.last["peak_bytes"]
            self.lasts.append(side.last)
        return told, peaks

    def job(self) -> Mapping[str, Any]:
        """Return the fine-tuning, by the names that both sides know."""
        folder = self.data / SST2.file
        return {
            "train": str(folder),
            "dev": str(folder.with_name("dev.tsv")),
            "encoder": str(hub.resolve("minilm")),
            "batch_size": 32,
            "passes": 1,
            "lr": 5e-5,
            "warmup": 0.1,
            "weight_decay": 0.01,
            "clip": 1.0,
            "seed": 1,
            "options": {"max_length": MAX_LENGTH},
            "threads": THREADS,
        }


def seconds_of_help() -> float:
    """Run ``onion --help`` in a process of its own; return how long that took."""
    call = "from onion.cli import main; main(['--help'])"
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", call], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
