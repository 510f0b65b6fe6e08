"""What fewer layers buy in prediction: an encoder of 6 layers beside one of 2 of its layers, as a student has them.

python -m benchmarks.layers [DEV.tsv] [--encoder minilm] [--layers 1 2] [--rounds 9] [--keep]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks.frame import DATA
from benchmarks.frame.processes import turned
from benchmarks.frame.section import Benchmark, Figure, Section, lacks_data
from benchmarks.frame.worker import version_of
from onion import DataProvider, Forward, Runner
from onion.device import use_threads
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features.cache import cached_features
from onion.tasks.networks.distillation import with_layers

BATCH = 64
HOW = f"""\
Texts a second that a classifier with all layers of an encoder and one with {{few}} of them predict ({{encoder}},
{{name}}, batches of {BATCH} by length, features made before, random heads), in turns in one process; who begins
alternates. What a student loses in accuracy stands in docs/composition.md."""


def measure(section: Section, given: Namespace) -> None:
    use_threads()
    task = Classification(max_length=128).fitted(given.file)
    examples = cached_features(task, given.file, Tokenizer.from_pretrained(given.encoder))
    whole = Encoder.from_pretrained(given.encoder)
    data = DataProvider(examples, BATCH, lengths=examples.lengths, collate=partial(task.collate, pad_id=0))
    runners = [Runner(data, Forward(task.network(encoder))) for encoder in (whole, with_layers(whole, given.layers))]
    for runner in runners:
        runner.run(passes=1)  # the first run also makes what later ones find made
    rounds = []
    for number in range(given.rounds):
        found = {place: len(examples) / _seconds(runners[place]) for place in turned([0, 1], number)}
        rounds.append((found[0], found[1]))
    section.how = HOW.format(few=len(given.layers), encoder=given.encoder, name=given.file.name)
    section.figures += figures_of(rounds, whole.config.num_hidden_layers, len(given.layers))
    section.versions["paddlepaddle"] = version_of("paddlepaddle")


def _seconds(runner: Runner) -> float:
    begun = perf_counter()
    runner.run(passes=1)
    return perf_counter() - begun


def figures_of(rounds: list[tuple[float, float]], whole: int, few: int) -> list[Figure]:
    """Return texts a second of both sides, and how often the small one is as fast as the whole one."""
    return [
        Figure(f"{whole} layers", "texts a second", [first for first, _ in rounds], digits=0),
        Figure(f"{few} layers", "texts a second", [second for _, second in rounds], digits=0),
        Figure("the few beside all", "times as fast", [second / first for first, second in rounds]),
    ]


BENCHMARK = Benchmark("layers", "Layers", HOW, __doc__, measure, rounds=9)
BENCHMARK.parser.add_argument(
    "file", nargs="?", type=Path, default=DATA / "glue" / "sst-2" / "dev.tsv", help="labelled texts"
)
BENCHMARK.parser.add_argument("--encoder", default="minilm", help="a known name or a folder")
BENCHMARK.parser.add_argument("--layers", type=int, nargs="+", default=[1, 2], help="those that the small one has")


def main(arguments: list[str] | None = None) -> int:
    lacking = lacks_data(BENCHMARK.parser.parse_args(arguments).file.parent, "bench")
    return 2 if lacking else BENCHMARK.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
