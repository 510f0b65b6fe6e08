"""Fine-tuning from a raw file to updated weights: onion's, and its peers'.

    python -m benchmarks.finetune [--rounds 3] [--only sst-2 mrpc chnsenticorp] [--peers NAME ...] [--steps N] [--avx2]
                                  [--keep]

All sides read the same file and the same folder; the losses of a few batches are compared before any time is told.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.common.driver import no_data
from benchmarks.common.limits import add_limit, limited
from benchmarks.common.measured import Measured, of_memory, versions_of
from benchmarks.common.options import add_parts, parser_of
from benchmarks.common.rounds import alternate
from benchmarks.common.sides import all_ready
from benchmarks.finetune.figures import (
    CLOSE,
    GOALS,
    GOALS_AVX2,
    GROUPED,
    ONION,
    PADDLENLP,
    PADDLENLP_SET,
    TRANSFORMERS,
    differences,
    of_share,
    of_speed,
)
from benchmarks.finetune.parts import BATCH, FEW, PARTS
from onion.host.math_library import VARIABLE

HOW = f"""\
Examples a second from the raw file to updated weights, reading and tokenising included, loading the model and imports
not; no features from before. SST-2 and MRPC: MiniLM (6 layers of 384, its real weights), at most 128 tokens;
ChnSentiCorp: the shape of ERNIE 1.0 base (12 of 768, random weights), at most 256. The first rows of each training
file, without those that have symbols such as ～, which PaddleNLP's BERT tokenizer alone sets apart; {BATCH} a batch,
one pass, AdamW, clipping; no tests, no checkpoints. Hugging Face's Trainer takes random batches, or batches grouped by
length as onion does; PaddleNLP's has no such option. Each side is a process with 2 threads. The losses of {FEW} batches
in the order of the file, without dropout, agree with onion's to {CLOSE:g}. The share of a step: the time of Paddle's
matmul, by itself, for the linear layers of the encoder, forward and backward, with the mean number of real tokens of a
batch, as a part of the time of onion's training step."""

PEERS: dict[str, tuple[str, str, dict[str, Any], dict[str, str]]] = {
    TRANSFORMERS: ("by_transformers", "transformers", {"sampling": "random"}, {}),
    GROUPED: ("by_transformers", "transformers", {"sampling": "group_by_length"}, {}),
    PADDLENLP: ("by_paddlenlp", "paddlenlp", {}, {}),
    PADDLENLP_SET: ("by_paddlenlp", "paddlenlp", {}, {VARIABLE: "5"}),
}
"""Name -> its engine, its environment, what its job says besides, and variables that are set."""

LEAST = 2
"""Steps of a training."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and tell; return the exit status."""
    parser = parser_of("finetune", __doc__, rounds=3)
    add_parts(parser, PARTS)
    add_limit(parser)
    parser.add_argument("--steps", type=int, help="of a training; default 8, of ChnSentiCorp's 2")
    settings = parser.parse_args(arguments)
    if settings.steps is not None and settings.steps < LEAST:
        parser.error(f"--steps is at least {LEAST}: a step is the time from one's end to the next one's")
    if no_data(settings.data, "bench"):
        return 2
    measured = Measured(*limited(settings, "finetune", "Fine-tuning", HOW), settings.rounds, [])
    for name in settings.only:
        goals = GOALS_AVX2.get(name, GOALS) if settings.avx2 else GOALS
        _measure(measured, name, settings.peers, settings.steps, settings.data, goals)
    measured.tell(settings.keep)
    return 0


def _measure(
    measured: Measured,
    name: str,
    wanted: Sequence[str] | None,
    steps: int | None,
    data: Path,
    goals: Mapping[str, float],
) -> None:
    """Run a part, and add what was found.

    Raises:
        FailedError: a side ended, or does something else.
    """
    part = PARTS[name]
    steps = steps or part.steps
    with TemporaryDirectory() as room:
        job = part.job(Path(room), data, steps)
        sides = [part.side(ONION, "benchmarks.finetune.side", {**job, "engine": "onion"})]
        for peer, (engine, environment, more, variables) in PEERS.items():
            if wanted is None or peer in wanted:
                given = {**job, **more, "engine": engine}
                sides.append(part.side(peer, "benchmarks.finetune.side", given, environment, variables))
        with all_ready(sides):
            apart = differences({side.name: side.round(ask="costs")["costs"] for side in sides})
            rounds = alternate(sides, measured.rounds, ask="train")
    measured.figures += [*of_speed(rounds, part.title, steps * BATCH, steps, goals), *of_share(rounds, part.title)]
    measured.figures += of_memory({side.name: side.last for side in sides}, f"{part.title}, ")
    measured.notes.append(f"{part.title}: {steps} updates a round")
    measured.notes += [f"{part.title}: the losses of {side} differ by {apart[side]:.1g} at most" for side in apart]
    measured.versions |= versions_of(side.last for side in sides)


if __name__ == "__main__":
    sys.exit(main())
