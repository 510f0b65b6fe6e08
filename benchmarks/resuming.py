"""How soon a run that is resumed in the middle of a pass over 10^9 tokens has its first batch, and in what memory.

    python -m benchmarks.resuming [--examples 10000000] [--tokens 8192] [--further 2000] [--rounds 5] [--keep]

Lengths as those of texts, 99 tokens on the average, are written to a file, which each round maps in a process of its
own. Reading the tokens is left out: an example is its length.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.frame.processes import Side, turned
from benchmarks.frame.section import Benchmark, Figure, Section
from onion.data import Loader

LIBRARIES = ("numpy",)
GOAL = 1.0
PASS = 3
LONGEST = 512
MEGABYTE = 1e6
HOW = """\
{examples:,} examples of {total:,} tokens in all, their lengths in a mapped file. Each side makes a `Loader` with
`shuffle=True`, enters pass 3 in its middle and takes the first batch; then it takes {further:,} more. By tokens a batch
has at most {tokens:,}; by examples {size}, which have as many on the average, of similar length. A process of its own
makes each round. Memory is what the process has beyond what it had before, without the mapped file."""

SIDES = ("by tokens", "by examples")


class Texts:
    """Examples that are their lengths."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> int:
        return int(self.lengths[index])


def prepare(job: Mapping[str, Any]) -> Callable[[], dict[str, float]]:
    """Map the lengths; job: their ``path``, settings of the ``loader``, the number of ``further`` batches."""
    source = Texts(np.memmap(job["path"], np.uint16, "r"))

    def work() -> dict[str, float]:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # what it had so far counts as its most
        memory, peak = _memory("RssAnon"), _memory("VmHWM")
        begun = perf_counter()
        loader = Loader(source, **job["loader"], lengths=source.lengths, shuffle=True, prefetch=0, collate=len)
        made = perf_counter()
        assert loader.batches_per_pass is not None
        batches = loader.batches(PASS, loader.batches_per_pass // 2)
        next(batches)
        first = perf_counter()
        found = {
            "made": made - begun,
            "first": first - begun,
            "peak": _memory("VmHWM") - peak,
            "kept": _memory("RssAnon") - memory,
        }
        for _ in range(job["further"]):
            next(batches)
        each = (perf_counter() - first) / job["further"]
        return {**found, "each": each, "later": _memory("RssAnon") - memory}

    return work


def _memory(kind: str) -> float:
    """Return megabytes of the process: of "RssAnon", those of mapped files left out, or "VmHWM", the most it had."""
    words = Path("/proc/self/status").read_text(encoding="ascii").split()
    return int(words[words.index(f"{kind}:") + 1]) * 1024 / MEGABYTE


def measure(section: Section, given: Namespace) -> None:
    random = np.random.default_rng(0)
    lengths = np.minimum(LONGEST, 1 + random.lognormal(np.log(70), 0.85, given.examples)).astype(np.uint16)
    total = int(lengths.sum(dtype=np.int64))
    size = max(1, given.tokens * given.examples // total)
    settings = ({"tokens_per_batch": given.tokens}, {"batch_size": size})
    rounds = []
    with tempfile.TemporaryDirectory() as room:
        path = Path(room) / "lengths"
        lengths.tofile(path)
        jobs = [{"path": str(path), "loader": each, "further": given.further} for each in settings]
        sides = [Side(name, "benchmarks.resuming", job, stays=False) for name, job in zip(SIDES, jobs, strict=True)]
        for number in range(given.rounds):
            rounds.append({side.name: side.round() for side in turned(sides, number)})
    section.how = HOW.format(
        examples=given.examples, total=total, further=given.further, tokens=given.tokens, size=size
    )
    section.figures += figures_of(rounds)
    section.add_versions(sides)


def figures_of(rounds: list[dict[str, dict[str, float]]]) -> list[Figure]:
    """Return the figures of each side; the goal is that of batches by tokens."""
    figures = []
    for side in SIDES:
        found = {name: [each[side][name] for each in rounds] for name in rounds[0][side]}
        goal = GOAL if side == SIDES[0] else None
        figures += [
            Figure(f"{side}: to the first batch in mid-pass", "s", found["first"], goal),
            Figure(f"{side}: of this the loader, whose order serves all passes", "s", found["made"]),
            Figure(f"{side}: each further batch", "ms", [1e3 * seconds for seconds in found["each"]], digits=3),
            Figure(f"{side}: memory kept", "MB", found["kept"], digits=0),
            Figure(f"{side}: memory after the further batches", "MB", found["later"], digits=0),
            Figure(f"{side}: peak memory", "MB", found["peak"], digits=0),
        ]
    return figures


BENCHMARK = Benchmark("resuming", "Resuming in mid-pass", HOW, __doc__, measure, rounds=5)
for name, default in (("examples", 10_000_000), ("tokens", 8192), ("further", 2000)):
    BENCHMARK.parser.add_argument(f"--{name}", type=int, default=default)
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
