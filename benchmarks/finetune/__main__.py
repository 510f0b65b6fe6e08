"""Fine-tuning from a raw file to updated weights: onion's, and its peers'.

    python -m benchmarks.finetune [--rounds 3] [--only sst-2 mrpc chnsenticorp] [--peers NAME ...] [--steps N] [--avx2]
                                  [--keep]

All sides read the same file and the same folder; the losses of a few batches are compared before any time is reported.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.finetune.work import Job
from benchmarks.frame.processes import FailedError, Round, Side, all_ready, alternate, ratios, values
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.inference import models
from onion.host.math_library import VARIABLE
from onion.models.config import EncoderConfig
from onion.models.formats.config_readers import CONFIG_FILE
from onion.models.tokenization.basic_tokenizer import is_symbol
from onion.models.weights import read_weights, write_weights

BATCH = 32
FEW = 5
"""On which all sides have to have the same losses."""
CLOSE = 1e-3
MIN_STEPS = 2

ONION = "onion"
TRANSFORMERS, GROUPED = "Hugging Face Trainer", "Hugging Face Trainer, grouped by length"
PADDLENLP, PADDLENLP_SET = "PaddleNLP's Trainer", "PaddleNLP's Trainer with MKL_DEBUG_CPU_TYPE=5"
GOALS = {TRANSFORMERS: 2.0, GROUPED: 1.3, PADDLENLP: 4.0}
"""At least so many times as fast as each."""
GOALS_AVX2 = {"sst-2": GOALS | {TRANSFORMERS: 3.0}}
"""Part -> the same without AVX-512, where it is another: torch's products do not use it on AMD processors anyway."""
GOAL_SHARE = 0.6

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
    TRANSFORMERS: ("transformers", "transformers", {"sampling": "random"}, {}),
    GROUPED: ("transformers", "transformers", {"sampling": "group_by_length"}, {}),
    PADDLENLP: ("paddlenlp", "paddlenlp", {}, {}),
    PADDLENLP_SET: ("paddlenlp", "paddlenlp", {}, {VARIABLE: "5"}),
}
"""Name -> its engine, its environment, what its job says besides, and variables that are set."""

RECIPE = {"batch_size": BATCH, "lr": 5e-5, "weight_decay": 0.01, "clip": 1.0, "seed": 1}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@dataclass(frozen=True)
class Part:
    """A training: a piece of a data set and an encoder, written so that every side reads the same.

    ``model`` makes a job of ``benchmarks.inference``; with ``stays`` the processes of the sides live for all rounds.
    """

    title: str
    file: str
    model: Callable[[Path, Path], Job]
    steps: int
    stays: bool = True

    def job(self, room: Path, data: Path, steps: int) -> Job:
        found = self.model(room, data)
        source = Path(found["folder"])
        return {
            **RECIPE,
            "folder": str(source),
            "still": str(_changed(source, room / "still", NO_DROPOUT)),
            "paddlenlp": str(_for_paddlenlp(source, room / "paddlenlp", {})),
            "paddlenlp still": str(_for_paddlenlp(source, room / "paddlenlp-still", NO_DROPOUT)),
            "head": found["head"],
            "max_length": found["max_length"],
            "train": str(head_of(data / self.file, steps * BATCH, room / "train.tsv")),
            "few": str(head_of(data / self.file, FEW * BATCH, room / "few.tsv")),
        }


PARTS = {
    "sst-2": Part("SST-2", "glue/sst-2/train.tsv", models.minilm, 8),
    "mrpc": Part("MRPC", "glue/mrpc/train.tsv", models.minilm, 8),
    "chnsenticorp": Part("ChnSentiCorp", "chnsenticorp/train.tsv", models.base, 2, stays=False),
}
"""By name; each side of the last takes some 7 GiB of memory."""


def head_of(file: Path, rows: int, to: Path) -> Path:
    """Write the header of a table and its first rows that all tokenizers cut in the same way; return where.

    Symbols beyond ASCII are left out: PaddleNLP sets them apart for BERT, the others do not.

    Raises:
        ValueError: the table has fewer.
    """

    def alike(line: str) -> bool:
        return not any(is_symbol(each) and not each.isascii() for each in line)

    with file.open(encoding="utf-8", newline="\n") as lines:
        found = [line.removesuffix("\n") for line in (next(lines), *islice(filter(alike, lines), rows))]
    if len(found) <= rows:
        raise ValueError(f"{file} has fewer than {rows} rows; ask for fewer steps")
    to.write_bytes("".join(f"{line}\n" for line in found).encode())
    return to


def _changed(source: Path, folder: Path, changes: dict[str, float]) -> Path:
    shutil.copytree(source, folder, ignore=lambda at, names: [name for name in names if Path(at, name).is_dir()])
    config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    (folder / CONFIG_FILE).write_text(json.dumps(config | changes), encoding="utf-8")
    return folder


def _for_paddlenlp(source: Path, folder: Path, changes: dict[str, float]) -> Path:
    """Write a model in the layout of PaddleNLP's BERT, with the words as its tokenizer reads them."""
    config = EncoderConfig.read(source).changed(**changes)
    write_weights(folder, read_weights(source).arrays, "paddlenlp", "bert.", config)
    config.write(folder)
    ids = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = "".join(f"{word}\n" for word in sorted(ids, key=ids.__getitem__))
    (folder / "vocab.txt").write_text(words, encoding="utf-8")
    return folder


def measure(section: Section, given: Namespace) -> None:
    for name in given.only:
        part, steps = PARTS[name], given.steps or PARTS[name].steps
        with TemporaryDirectory() as room:
            sides = _sides(part, part.job(Path(room), given.data, steps), given.peers)
            with all_ready(sides):
                apart = differences({side.name: side.round(ask="costs")["costs"] for side in sides})
                rounds = alternate(sides, given.rounds, ask="train")
        goals = GOALS_AVX2.get(name, GOALS) if given.avx2 else GOALS
        section.figures += of_speed(rounds, part.title, steps * BATCH, steps, goals)
        section.figures.append(of_share(rounds, part.title))
        section.add_memory(sides, f"{part.title}, ")
        section.add_versions(sides)
        section.notes.append(f"{part.title}: {steps} updates a round")
        section.notes += [f"{part.title}: the losses of {side} differ by {apart[side]:.1g} at most" for side in apart]


def _sides(part: Part, job: Job, wanted: Sequence[str] | None) -> list[Side]:
    module = "benchmarks.finetune.work"
    sides = [Side(ONION, module, {**job, "engine": "onion"}, stays=part.stays)]
    for peer, (engine, environment, more, variables) in PEERS.items():
        if wanted is None or peer in wanted:
            given = {**job, **more, "engine": engine}
            sides.append(Side(peer, module, given, environment, variables, stays=part.stays))
    return sides


def differences(losses: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return how far each side's costs, a number a batch, are from onion's at most.

    Raises:
        FailedError: further than ``CLOSE``, or for another number of batches.
    """
    own = losses[ONION]
    found = {side: _difference(each, own) for side, each in losses.items() if side != ONION}
    for side, far in found.items():
        if not far <= CLOSE:
            raise FailedError(
                f"{side} does not do onion's work, so no times: costs of {list(losses[side])}, onion's {list(own)}"
            )
    return found


def _difference(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other) or not one:
        return float("inf")
    apart = [abs(left - right) for left, right in zip(one, other, strict=True)]
    return max(apart) if all(map(math.isfinite, apart)) else float("inf")


def of_speed(
    rounds: Sequence[Round], title: str, examples: int, steps: int, goals: Mapping[str, float]
) -> list[Figure]:
    """Return the examples a second of every side, and onion's as a ratio to each.

    Raises:
        FailedError: a side made another number of updates.
    """
    found = []
    for side in sorted(rounds[0], key=lambda name: name != ONION):
        for each in rounds:
            if each[side]["steps"] != steps:
                raise FailedError(f"{title}: {side} made {each[side]['steps']} updates, not {steps}")
        speed = [examples / seconds for seconds in values(rounds, side, "seconds")]
        found.append(Figure(f"{title}: {side}", "examples a second", speed, digits=1))
        if side != ONION:
            times = ratios(rounds, side, ONION, "seconds")
            found.append(Figure("onion beside it", "times as fast", times, at_least=goals.get(side)))
    return found


def of_share(rounds: Sequence[Round], title: str) -> Figure:
    """Return which share of onion's step its matrix products take by themselves."""
    shares = [each[ONION]["products"] / each[ONION]["step"] for each in rounds]
    return Figure(f"{title}: the share of a step that Paddle's matmul takes", "", shares, at_least=GOAL_SHARE)


def _steps(text: str) -> int:
    if int(text) < MIN_STEPS:
        raise ArgumentTypeError(f"must be at least {MIN_STEPS}: a step is the time from one's end to the next one's")
    return int(text)


BENCHMARK = Benchmark("finetune", "Fine-tuning", HOW, __doc__, measure, 3, PARTS, peers=True, data=True, avx2=True)
BENCHMARK.parser.add_argument("--steps", type=_steps, help="of a training; default 8, of ChnSentiCorp's 2")
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
