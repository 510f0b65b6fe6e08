"""Data: texts to features, features to batches, and the start of a run, beside transformers.

    python -m benchmarks.data [--rounds 5] [--starts 3] [--steps 100] [--data DIR] [--only texts cache starts training]

Texts become ids on both sides in turns, after both were seen to find the same ids. Trainings are of SST-2 with MiniLM.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.frame.processes import THREADS, Round, Side, all_ready, alternate, ratios, values
from benchmarks.frame.section import Benchmark, Figure, Section
from onion.models import hub
from onion.models.tokenizer import Tokenizer

ONION, PEER = "onion", "transformers"
GOAL_TOKENS, GOAL_WAITS, GOAL_HELP = 1e6, 1.0, 0.3
MEGABYTE = 1e6
MAX_LENGTH = 128
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


@dataclass(frozen=True)
class Set:
    """A data set: its training file and its vocabulary (None: MiniLM's) below the folder of data sets."""

    title: str
    file: str
    vocabulary: str | None = None

    def tokenizer(self, data: Path, room: Path) -> Path:
        """Return the folder of its tokenizer; one that both sides can read is made in ``room`` if need be."""
        if self.vocabulary is None:
            return hub.resolve("minilm")
        folder = room / self.vocabulary.replace("/", "-")
        tokenizer = Tokenizer.from_pretrained(data / self.vocabulary)
        tokenizer.settings["tokenizer_class"] = "BertTokenizerFast"
        tokenizer.save_pretrained(folder)
        return folder


SST2 = Set("SST-2", "glue/sst-2/train.tsv")
CHN = Set("ChnSentiCorp", "chnsenticorp/train.tsv", "vocab/bert-base-chinese")
SETS = (SST2, CHN)


def measure(section: Section, given: Namespace) -> None:
    bench = Bench(given.data.resolve(), section)
    for part in given.only:
        section.figures += {
            "texts": lambda: bench.texts(given.rounds),
            "cache": lambda: bench.cache(given.rounds),
            "starts": lambda: bench.starts(given.starts),
            "training": lambda: bench.training(given.steps),
        }[part]()
    section.notes += NOTES


class Bench:
    """The parts of the benchmark, which share their folder of data, and report versions to a section."""

    def __init__(self, data: Path, section: Section) -> None:
        self.data, self.section = data, section

    def texts(self, rounds: int) -> list[Figure]:
        with tempfile.TemporaryDirectory() as room:
            return [figure for each in SETS for figure in self._set(each, Path(room), rounds)]

    def _set(self, each: Set, room: Path, rounds: int) -> Iterator[Figure]:
        folder = each.tokenizer(self.data, room)
        job = {"file": str(self.data / each.file), "tokenizer": str(folder), "max_length": MAX_LENGTH}
        threads = {"RAYON_NUM_THREADS": str(THREADS)}
        sides = [
            Side(ONION, "benchmarks.data.onion_sides:texts", job, environment=threads),
            Side(PEER, "benchmarks.data.transformers_sides:texts", job, PEER, threads),
        ]
        with all_ready(sides):
            require_equal_ids(each.title, alternate(sides, 1, digest=True)[0])
            found = alternate(sides, rounds)
        self.section.add_versions(sides)
        return of_texts(each.title, found)

    def cache(self, rounds: int) -> list[Figure]:
        """Read cached features; the first round, in which they may be made, does not count."""
        side = Side(ONION, "benchmarks.data.onion_sides:cached", self.job())
        with all_ready([side]):
            found = alternate([side], 1 + rounds)[1:]
        self.section.add_versions([side])
        return [of_cache(found)]

    def starts(self, rounds: int) -> list[Figure]:
        """Begin trainings and end them with the first step; the first round warms the cache of files."""
        found = [self._trained(1)[0] for _ in range(1 + rounds)]
        return list(of_starts(found[1:], [seconds_of_help() for _ in range(1 + rounds)][1:]))

    def training(self, steps: int) -> list[Figure]:
        found, peaks = self._trained(steps)
        return list(of_training([found], [peaks]))

    def _trained(self, steps: int) -> tuple[Round, dict[str, int]]:
        """Train by both sides, one after the other in processes of their own; return their answers, and peaks."""
        found: Round = {}
        peaks: dict[str, int] = {}
        for name, peer in ((ONION, None), (PEER, PEER)):
            job = {**self.job(), "begun": time.time()}
            side = Side(name, f"benchmarks.data.{name}_sides:training", job, peer, stays=False)
            found[name] = side.round(steps=steps)
            peaks[name] = side.last["peak_bytes"]
            self.section.add_versions([side])
        return found, peaks

    def job(self) -> Mapping[str, Any]:
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
    call = "from onion.cli import main; main(['--help'])"
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", call], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def require_equal_ids(title: str, told: Round) -> None:
    """Require that both sides, both ways, found the same ids.

    Raises:
        SystemExit: they did not; no times are reported then.
    """
    digests = {told[side][f"{way} digest"] for side in (ONION, PEER) for way in ("features", "tokenizer")}
    if len(digests) > 1:
        raise SystemExit(f"{title}: the sides found different ids, so no times are reported")


def of_texts(title: str, rounds: Sequence[Round]) -> Iterator[Figure]:
    for side, way, what in (
        (ONION, "features", "onion, file to features"),
        (ONION, "tokenizer", "onion, texts to ids"),
        (PEER, "features", "transformers, file to ids"),
        (PEER, "tokenizer", "transformers, texts to ids"),
    ):
        yield Figure(f"{title}: {what}", "texts a second", values(rounds, side, way), digits=0)
    # With reading the file, against the peer's tokenizer alone: its texts are in a list already.
    whole = [each[ONION]["features"] / each[PEER]["tokenizer"] for each in rounds]
    yield Figure(f"{title}: file to features, onion beside transformers", "x", whole, at_least=1.0)
    yield Figure(f"{title}: texts to ids, the same", "x", ratios(rounds, ONION, PEER, "tokenizer"), at_least=1.0)


def of_cache(rounds: Sequence[Round]) -> Figure:
    speed = values(rounds, ONION, "tokens")
    return Figure("features from the cache through DataProvider", "tokens a second", speed, None, GOAL_TOKENS, 0)


def of_training(rounds: Sequence[Round], peaks: Sequence[Mapping[str, int]]) -> Iterator[Figure]:
    """Yield waits and memory (``peaks``: side -> bytes) of trainings that have the same number of steps."""
    for each in rounds:
        if each[ONION]["steps"] != each[PEER]["steps"]:
            raise SystemExit("the sides made different numbers of steps")
    waits = [100 * share for share in values(rounds, ONION, "waits")]
    yield Figure("share of a training that waits for data", "%", waits, GOAL_WAITS, digits=3)
    for side in (ONION, PEER):
        yield Figure(f"peak memory of a training, {side}", "MB", [peak[side] / MEGABYTE for peak in peaks], digits=0)


def of_starts(rounds: Sequence[Round], helps: Sequence[float]) -> Iterator[Figure]:
    yield Figure("`onion --help`", "s", helps, GOAL_HELP, digits=3)
    yield Figure("start of a training to its first batch, onion, features cached", "s", values(rounds, ONION, "first"))
    yield Figure("the same, transformers, which tokenises", "s", values(rounds, PEER, "first"))


BENCHMARK = Benchmark("data", "Data", HOW, __doc__, measure, rounds=5, parts=PARTS, data=True)
BENCHMARK.parser.add_argument("--starts", type=int, default=3, help="rounds of starts")
BENCHMARK.parser.add_argument("--steps", type=int, default=100, help="of the training whose memory is measured")
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
