"""The parts of ``make gpu``: a command each, whose output is shown as it comes and kept for the report."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

PYTHON = "{python}"
"""Stands for the Python that runs all this."""
DATA = "{data}"
"""Stands for the folder of data sets."""

EXACT = {"NVIDIA_TF32_OVERRIDE": "0"}
"""Products of float32 in all their bits: GPUs since Ampere round what goes into them to 10 bits otherwise."""

SAME_BITS = {**EXACT, "FLAGS_cudnn_deterministic": "1", "FLAGS_embedding_deterministic": "1"}
"""And every sum in the same order each time: of attention's gradients, and of embeddings'."""


class Part(NamedTuple):
    """A part.

    Attributes:
        title: what it shows.
        command: with places for what differs.
        environment: variables that are set.
        lacks: exit status -> what was not there; with any other than 0 and these it failed.
    """

    title: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    lacks: Mapping[int, str] = {}


class Outcome(NamedTuple):
    """What came of a part.

    Attributes:
        name: of the part.
        title: what it was to show.
        verdict: ``passed``, ``failed (status n)`` or ``not run: why``.
        seconds: that it took.
        output: all it printed.
    """

    name: str
    title: str
    verdict: str
    seconds: float
    output: str

    @property
    def failed(self) -> bool:
        """Whether it did not do what it should."""
        return self.verdict.startswith("failed")


def pytest(*given: str) -> tuple[str, ...]:
    """Return the command that runs tests."""
    return (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *given)


def training(*given: str) -> tuple[str, ...]:
    """Return the command that trains for a moment."""
    return (PYTHON, "scripts/on_gpu/training.py", *given)


NO_DATA = {2: "the data sets are not there; DATA=... gives their folder"}

PARTS = {
    "tests": Part("tests that need a GPU", pytest("-m", "gpu", "tests"), SAME_BITS),
    "parity": Part(
        "encoders of every architecture computed on the GPU: outputs and all gradients as the references have them",
        pytest("tests/models/test_encoder_golden.py", "tests/models/test_encoder_variants.py"),
        EXACT,
    ),
    "mixed": Part("mixed precision", pytest("tests/items/test_mixed_precision.py", "tests/models/fused/test_flash.py")),
    "kills": Part(
        "runs killed anywhere and resumed, bit by bit",
        (PYTHON, "scripts/kill.py", "--count", "40", "--jobs", "1"),
        SAME_BITS,
    ),
    "finetune": Part(
        "fine-tuning speed, beside the peers that `make parity` has installed (torch without CUDA computes on the CPU)",
        (PYTHON, "-m", "benchmarks.finetune", "--only", "sst-2", "mrpc", "--data", DATA),
        lacks=NO_DATA,
    ),
    "pretraining": Part("speed and memory of pretraining (task mask) in float32", training()),
    "pretraining-16": Part("the same in bfloat16", training("--dtype", "bfloat16")),
}


def run(name: str, part: Part, root: Path, data: Path) -> Outcome:
    """Run a part, in the repository's root.

    Args:
        name: of the part.
        part: what is run.
        root: of the repository.
        data: the folder of data sets.
    """
    command = [word.format(python=sys.executable, data=data) for word in part.command]
    print(f"== {name}: {' '.join(command)}", flush=True)
    started, lines = perf_counter(), []
    with subprocess.Popen(  # noqa: S603  commands that stand in this repository
        command,
        cwd=root,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | part.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return Outcome(name, part.title, _verdict(process.returncode, part), perf_counter() - started, "".join(lines))


def _verdict(status: int, part: Part) -> str:
    if status == 0:
        return "passed"
    return f"not run: {part.lacks[status]}" if status in part.lacks else f"failed (status {status})"
