"""What fewer layers buy in prediction: an encoder of 6 layers beside one of 2 of its layers, as a student has them.

    python benchmarks/layers.py DEV.tsv [--encoder minilm] [--layers 1 2] [--rounds 9]

Both classify the texts of a file in batches by length, in turns, round after round; which one begins alternates. The
features are made before. Told are texts a second (medians and quartiles over the rounds) and the ratio within a round.
The last line is JSON. Weights of the heads are random: they do not change the time.
"""

from __future__ import annotations

import argparse
import json
import statistics
from functools import partial
from time import perf_counter

from onion import DataProvider, Forward, Runner
from onion.device import use_threads
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.distillation import with_layers
from onion.tasks.features.cache import cached_features

BATCH = 64


def main(arguments: list[str] | None = None) -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="labelled texts, as onion train --task classify takes them")
    parser.add_argument("--encoder", default="minilm", help="a known name or a folder")
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 2], help="those that the small one has")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args(arguments)
    use_threads()
    task = Classification(max_length=128).fitted(given.file)
    examples = cached_features(task, given.file, Tokenizer.from_pretrained(given.encoder))
    whole = Encoder.from_pretrained(given.encoder)
    data = DataProvider(examples, BATCH, length=examples.lengths, collate=partial(task.collate, pad_id=0))
    runners = [Runner(data, Forward(task.network(encoder))) for encoder in (whole, with_layers(whole, given.layers))]
    for runner in runners:
        runner.run(passes=1)  # the first run also makes what later ones find made
    rounds = []
    for number in range(given.rounds):
        order = [0, 1] if number % 2 == 0 else [1, 0]
        found = {place: len(examples) / _seconds(runners[place]) for place in order}
        rounds.append((found[0], found[1]))
    tell(rounds, whole.config.num_hidden_layers, len(given.layers))


def _seconds(runner: Runner) -> float:
    begun = perf_counter()
    runner.run(passes=1)
    return perf_counter() - begun


def tell(rounds: list[tuple[float, float]], whole: int, few: int) -> None:
    """Print texts a second of both sides, and how often the small one is as fast as the whole one."""
    columns = {
        f"{whole} layers": [first for first, _ in rounds],
        f"{few} layers": [second for _, second in rounds],
        "ratio": [second / first for first, second in rounds],
    }
    medians = {}
    for name, values in columns.items():
        low, middle, high = statistics.quantiles(values, n=4)
        medians[name] = round(middle, 2)
        print(f"{name:>10}: {middle:9.2f}  ({low:.2f} to {high:.2f})")
    print(json.dumps({"rounds": len(rounds), **medians}))


if __name__ == "__main__":
    main()
