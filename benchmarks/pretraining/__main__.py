"""Pretraining, in tokens a second: onion's and its peers'.

    python -m benchmarks.pretraining [--rounds 3] [--peers NAME ...] [--steps N] [--keep]

All sides are given the same rows of ids and the same weights; the costs of a few batches are compared before any time
is reported.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.finetune.__main__ import CLOSE, differences
from benchmarks.frame.processes import Round, Side, all_ready, alternate, ratios, values
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.pretraining.material import FEW, RECIPE, job
from benchmarks.pretraining.work import Job
from onion.host.math_library import VARIABLE

LINES, VOCABULARY = Path("ernie_pretrain_demo", "demo_train_set.gz"), Path("vocab", "ernie-1.0-zh")
STEPS = 20

ONION, BY_TOKENS = "onion", "onion, batches by tokens"
TRANSFORMERS, GROUPED = "Hugging Face Trainer", "Hugging Face Trainer, grouped by length"
PADDLENLP, PADDLENLP_SET = "PaddleNLP", "PaddleNLP with MKL_DEBUG_CPU_TYPE=5"
GOALS = {TRANSFORMERS: 3.0, PADDLENLP: 5.0}
"""At least so many times as fast as each, by tokens."""

PEERS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    TRANSFORMERS: ("transformers", {"sampling": "random"}, {}),
    GROUPED: ("transformers", {"sampling": "group_by_length"}, {}),
    PADDLENLP: ("paddlenlp", {}, {}),
    PADDLENLP_SET: ("paddlenlp", {}, {VARIABLE: "5"}),
}
"""Name -> its engine and environment, what its job says besides, and variables that are set."""

HOW = f"""\
Tokens a second, padding not counted, of pretraining from random weights: masked words and next sentence, 4 layers of
256, 4 heads, 1,024 inside, a vocabulary of 18,000, in float32. The rows are the first of the demo data of ERNIE 1.0,
whose ids are given (95 tokens in the mean, 131 at most); {RECIPE["batch_size"]} a batch in random order, 15 % of the
tokens masked anew, dropout 0.1, AdamW, clipping; loading the network and imports not counted. Hugging Face:
BertForPreTraining, run_mlm's collator and Trainer, with random batches or grouped by length; it scores every token.
PaddleNLP: ErnieForPretraining and its criterion in the loop of its run_pretrain, which scores the masked ones, padded
to the longest of a batch. onion by tokens: batches of rows of similar length, of at most as many tokens as
{RECIPE["batch_size"]} rows have in the mean. Each side is a process with 2 threads. The costs of {FEW} batches with
given masks, without dropout, agree with onion's to {CLOSE:g}."""


def measure(section: Section, given: Namespace) -> None:
    steps = given.steps or STEPS
    with TemporaryDirectory() as room:
        made = job(Path(room), given.data / LINES, given.data / VOCABULARY, steps)
        sides = sides_of(made, steps, given.peers)
        with all_ready(sides):
            apart = differences({side.name: side.round(ask="costs")["costs"] for side in sides})
            rounds = alternate(sides, given.rounds, ask="train")
    section.figures += of_speed(rounds, made["tokens"], GOALS)
    section.add_memory(sides)
    section.add_versions(sides)
    section.notes.append(f"{steps * RECIPE['batch_size']} rows, {made['tokens']:,} tokens a round")
    section.notes += [f"the costs of {side} differ by {apart[side]:.1g} at most" for side in apart if side != BY_TOKENS]
    section.notes.append(f"mean cost of the last three batches: {costs_of(rounds)}")


def sides_of(made: Job, steps: int, wanted: Sequence[str] | None) -> list[Side]:
    """Return onion's two sides and the peers that are wanted; None: all."""
    module = "benchmarks.pretraining.work"
    tokens = -(-made["tokens"] // steps)
    sides = [
        Side(ONION, module, {**made, "engine": "onion"}),
        Side(BY_TOKENS, module, {**made, "engine": "onion", "tokens_per_batch": tokens}),
    ]
    for peer, (engine, more, variables) in PEERS.items():
        if wanted is None or peer in wanted:
            sides.append(Side(peer, module, {**made, **more, "engine": engine}, engine, variables))
    return sides


def of_speed(rounds: Sequence[Round], tokens: int, goals: Mapping[str, float]) -> list[Figure]:
    """Return the tokens a second of every side, and onion's by tokens as a ratio to each."""
    found = []
    for side in sorted(rounds[0], key=lambda name: name not in (ONION, BY_TOKENS)):
        speed = [tokens / seconds for seconds in values(rounds, side, "seconds")]
        found.append(Figure(side, "tokens a second", speed, digits=0))
        if side != BY_TOKENS:
            times = ratios(rounds, side, BY_TOKENS, "seconds")
            found.append(Figure("onion by tokens beside it", "times as fast", times, at_least=goals.get(side)))
    return found


def costs_of(rounds: Sequence[Round]) -> str:
    """Return the cost that each side came to in the last round, where it would show that a side does not learn."""
    return ", ".join(f"{side} {rounds[-1][side]['last_cost']:.2f}" for side in sorted(rounds[-1]))


BENCHMARK = Benchmark("pretraining", "Pretraining", HOW, __doc__, measure, 3, peers=True, data=True)
BENCHMARK.parser.add_argument("--steps", type=int, help=f"batches of {RECIPE['batch_size']} rows; default {STEPS}")
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
