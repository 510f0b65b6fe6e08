"""Thirty steps of ERNIE 1.0's pretraining by onion and by a loop in plain Paddle: the cost of each step.

    python -m scripts.pretraining_parity FOLDER

FOLDER has demo_train_set.gz, as ERNIE 1.0 is published with it. Both begin with the same weights and are given the same
lines with ERNIE's own masks: masked words and next sentence, no dropout; AdamW, the global norm clipped to 1, decay
without norms and biases, a rate that rises and then falls as fluid's ``linear_warmup_decay``. Exit status 1: a cost
differs by more than 1e-5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import paddle

from onion.tasks.pretraining.corpus.ernie_examples import ErnieExamples
from onion.tasks.pretraining.examples import Example
from scripts.console import columns
from scripts.parity.common import TOLERANCE, worst
from scripts.pretraining_parity import by_onion, plain
from scripts.pretraining_parity.material import Recipe, first, masked_batches, small_config

VOCAB_SIZE, SEED = 18000, 1


@dataclass(frozen=True)
class Costs:
    """The cost of each step: onion's, the plain loop's, and the plain loop's with the epsilon of Paddle 1.x."""

    onion: list[float]
    plain: list[float]
    plain_of_fluid: list[float]

    @property
    def apart(self) -> list[float]:
        """How far onion's and the plain loop's are apart."""
        return [abs(ours - theirs) for ours, theirs in zip(self.onion, self.plain, strict=True)]


def compare(examples: Sequence[Example], recipe: Recipe, vocab_size: int) -> Costs:
    """Return the costs of each step."""
    config = small_config(vocab_size)
    paddle.seed(SEED)
    ours = by_onion.network_of(config)
    start = by_onion.arrays_of(ours)
    given = first(examples, recipe)

    def theirs(epsilon: plain.Epsilon) -> list[float]:
        network = plain.PlainErnie(config)
        plain.take_weights(network, start)
        return plain.costs(network, masked_batches(given, recipe, vocab_size), recipe, epsilon)

    return Costs(by_onion.costs(ours, given, recipe), theirs(plain.of_paddle), theirs(plain.of_fluid))


def main() -> int:
    """Print the costs; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    recipe = Recipe()
    lines = ErnieExamples.read([parser.parse_args().folder / "demo_train_set.gz"], vocab_size=VOCAB_SIZE)
    found = compare(lines.examples, recipe, VOCAB_SIZE)
    each = zip(found.onion, found.plain, found.apart, strict=True)
    rows = [
        (str(step), f"{ours:.6f}", f"{theirs:.6f}", f"{far:.1e}") for step, (ours, theirs, far) in enumerate(each, 1)
    ]
    print(columns([("step", "onion", "plain Paddle", "difference"), *rows]))
    far = worst(found.apart)
    print(f"\nthe largest difference is {far:.1e}: {'equal' if far <= TOLERANCE else 'DIFFERS'}")
    fluid = abs(found.plain[-1] - found.plain_of_fluid[-1])
    print(f"the epsilon of Paddle 1.x, which onion has not, changes the last cost by {fluid:.1e}")
    return 0 if far <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
