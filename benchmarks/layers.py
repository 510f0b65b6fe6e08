"""What fewer layers buy in prediction: an encoder of 6 layers beside one of 2 of its layers, as a student has them.

python -m benchmarks.layers [DEV.tsv] [--encoder minilm] [--layers 1 2] [--rounds 9] [--keep]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks.common.driver import DATA, no_data
from benchmarks.common.measured import Figure, Measured
from benchmarks.common.options import parser_of
from onion import DataProvider, Forward, Runner
from onion.device import paddle, use_threads
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


def main(arguments: list[str] | None = None) -> int:
    """Measure and tell; return the exit status."""
    parser = parser_of("layers", __doc__, rounds=9)
    parser.add_argument(
        "file", nargs="?", type=Path, default=DATA / "glue" / "sst-2" / "dev.tsv", help="labelled texts"
    )
    parser.add_argument("--encoder", default="minilm", help="a known name or a folder")
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 2], help="those that the small one has")
    given = parser.parse_args(arguments)
    if no_data(given.file.parent, "bench"):
        return 2
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
        order = [0, 1] if number % 2 == 0 else [1, 0]
        found = {place: len(examples) / _seconds(runners[place]) for place in order}
        rounds.append((found[0], found[1]))
    how = HOW.format(few=len(given.layers), encoder=given.encoder, name=given.file.name)
    figures = figures_of(rounds, whole.config.num_hidden_layers, len(given.layers))
    measured = Measured("layers", "Layers", how, given.rounds, figures, versions={"paddlepaddle": paddle().__version__})
    measured.tell(given.keep)
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
