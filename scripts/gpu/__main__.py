"""Try onion on a GPU, and write a report for an issue: ``make gpu``.

    python -m scripts.gpu [tests parity mixed kills finetune pretraining pretraining-16] [--report out/gpu.md]

It uses the Python that runs it, in which onion and a Paddle for GPUs are installed (docs/gpu.md), and installs nothing.
Each part is a process; one that fails does not stop the others. Exit status 1 if a part failed, or there is no GPU.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import NamedTuple

from scripts.console import parser_of

ROOT = Path(__file__).parents[2]
SEE = "docs/gpu.md tells which Paddle is for which GPU."


def main(arguments: list[str] | None = None) -> int:
    given = _given(arguments)
    paddle, obstacle = _paddle()
    if paddle is None:
        print(f"nothing was run: {obstacle} {SEE}")
        return 1
    outcomes = [run(name, PARTS[name], ROOT, given.data.resolve()) for name in given.parts or PARTS]
    text = page(described(paddle, ROOT), outcomes)
    given.report.parent.mkdir(parents=True, exist_ok=True)
    given.report.write_text(text, encoding="utf-8")
    print(f"\n{text}\nthe report is {given.report}")
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def _given(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help="only these")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the folder of data sets")
    parser.add_argument("--report", type=Path, default=Path("out/gpu.md"), help="where it is written")
    return parser.parse_args(arguments)


def _paddle() -> tuple[ModuleType | None, str]:
    """Return a Paddle that has a GPU; or None, and what is in the way."""
    try:
        import onion.device
        import onion.models  # which only an installation has
    except ModuleNotFoundError as error:
        return None, f"{sys.executable} has no {error.name}; name a Python that has onion by GPU_PYTHON=..."
    try:
        paddle = onion.device.paddle()
    except onion.OnionError as error:
        return None, str(error)
    if not paddle.is_compiled_with_cuda():
        return None, f"Paddle {paddle.__version__} of {sys.executable} is for the CPU."
    if not paddle.device.cuda.device_count():
        return None, f"Paddle {paddle.__version__} (CUDA {paddle.version.cuda()}) finds no GPU."
    return paddle, ""


PYTHON, DATA = "{python}", "{data}"
"""Placeholders of the Python that runs this, and of the folder of data sets."""

EXACT = {"NVIDIA_TF32_OVERRIDE": "0"}
"""Products of float32 in full precision; otherwise GPUs since Ampere round the factors to 10 bits."""

SAME_BITS = {**EXACT, "FLAGS_cudnn_deterministic": "1", "FLAGS_embedding_deterministic": "1"}
"""And sums in the same order each time, of attention's gradients and of embeddings'."""


class Part(NamedTuple):
    """A part: what it shows, command, variables, and exit status -> what was missing (others but 0 are failures)."""

    title: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    lacks: Mapping[int, str] = {}


class Outcome(NamedTuple):
    """The result of a part; the verdict is ``passed``, ``failed (status n)`` or ``not run: why``."""

    name: str
    title: str
    verdict: str
    seconds: float
    output: str

    @property
    def failed(self) -> bool:
        return self.verdict.startswith("failed")


def pytest(*given: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *given)


def training(*given: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "scripts.gpu.training", *given)


NO_DATA = {2: "the data sets are not there; DATA=... gives their folder"}

PARTS = {
    "tests": Part("tests that need a GPU", pytest("-m", "gpu", "tests"), SAME_BITS),
    "parity": Part(
        "encoders of every architecture computed on the GPU: outputs and all gradients as the references have them",
        pytest("tests/models/test_encoder_golden.py", "tests/models/test_encoder.py"),
        EXACT,
    ),
    "mixed": Part("mixed precision", pytest("tests/items/test_mixed_precision.py", "tests/models/fused/test_flash.py")),
    "kills": Part(
        "runs killed anywhere and resumed, bit by bit",
        (PYTHON, "-m", "scripts.crash_test", "--count", "40", "--jobs", "1"),
        SAME_BITS,
    ),
    "finetune": Part(
        "fine-tuning speed, beside the peers that `make parity` has installed (torch without CUDA computes on the CPU)",
        (PYTHON, "-m", "benchmarks.finetune", "--only", "sst-2", "mrpc", "--data", DATA),
        lacks=NO_DATA,
    ),
    "pretraining": Part("speed and memory of pretraining (task masked-lm) in float32", training()),
    "pretraining-16": Part("the same in bfloat16", training("--dtype", "bfloat16")),
}


def run(name: str, part: Part, root: Path, data: Path) -> Outcome:
    command = [word.format(python=sys.executable, data=data) for word in part.command]
    print(f"== {name}: {' '.join(command)}", flush=True)
    started, lines = perf_counter(), []
    with subprocess.Popen(
        command,
        cwd=root,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **part.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    status = process.returncode
    verdict = f"not run: {part.lacks[status]}" if status in part.lacks else f"failed (status {status})"
    seconds = perf_counter() - started
    return Outcome(name, part.title, verdict if status else "passed", seconds, "".join(lines))


LIBRARIES = ("onion-paddle", "numpy", "torch", "transformers")


def described(paddle: ModuleType, root: Path) -> dict[str, str]:
    """Return what there is, by its name; Paddle has a GPU."""
    found = paddle.device.cuda.get_device_properties(0)
    return {
        "GPU": f"{found.name}, {found.total_memory / 2**30:.1f} GiB, compute capability {found.major}.{found.minor}",
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", cwd=root),
        "Paddle": f"{paddle.__version__}, CUDA {paddle.version.cuda()}, cuDNN {paddle.version.cudnn()}",
        "commit": _said("git", "describe", "--always", "--dirty", cwd=root),
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        **{name: _version(name) for name in LIBRARIES},
    }


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not in this environment"


def _said(program: str, *given: str, cwd: Path) -> str:
    path = shutil.which(program)
    if path is None:
        return f"unknown: there is no {program}"
    told = subprocess.run([path, *given], cwd=cwd, capture_output=True, text=True, check=False)
    return (told.stdout or told.stderr).strip().partition("\n")[0] or f"unknown: {program} says nothing"


LINES_OF_FAILED, LINES_OF_PASSED = 40, 12
"""Last lines of the output of a part that are shown; those of one that passed have its figures or counts."""


def page(machine: Mapping[str, str], outcomes: Sequence[Outcome]) -> str:
    bad = [outcome.name for outcome in outcomes if outcome.failed]
    head = f"{len(bad)} of {len(outcomes)} parts failed: {', '.join(bad)}" if bad else "no part failed"
    lines = [f"# onion on {machine.get('GPU', 'a GPU').partition(',')[0]}: {head}", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {_cell(value)} |" for name, value in machine.items()]
    lines += ["", "| part | what it shows | outcome | seconds |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {each.name} | {_cell(each.title)} | {_cell(each.verdict)} | {each.seconds:.0f} |" for each in outcomes
    ]
    for each in outcomes:
        lines += ["", f"## {each.name}: {each.verdict}", "", *_fenced(each)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _fenced(outcome: Outcome) -> list[str]:
    """The last lines, in a fence that they cannot close."""
    last = outcome.output.rstrip().splitlines()[-(LINES_OF_FAILED if outcome.failed else LINES_OF_PASSED) :]
    fence = "```"
    while any(fence in line for line in last):
        fence += "`"
    return [fence, *last, fence]


if __name__ == "__main__":
    sys.exit(main())
