"""What a person with a GPU runs: ``make gpu``. It tries onion on it, and writes a report for an issue.

    python scripts/gpu.py [tests parity mixed kills finetune pretraining pretraining-16] [--report out/gpu.md]

It takes the Python that runs it, in which onion and a Paddle for GPUs are installed (docs/gpu.md), and installs
nothing. Each part is a process; one that fails does not stop the others. Exit status 1 if a part failed, or if there is
no GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import ModuleType

from on_gpu.machine import described
from on_gpu.parts import PARTS, run
from on_gpu.report import page

ROOT = Path(__file__).parents[1]
SEE = "docs/gpu.md tells which Paddle is for which GPU."


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for, and write the report; return the exit status."""
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help="only these")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the folder of data sets")
    parser.add_argument("--report", type=Path, default=Path("out/gpu.md"), help="where it is written")
    return parser.parse_args(arguments)


def _paddle() -> tuple[ModuleType | None, str]:
    """Return a Paddle that has a GPU; or None, and what is in the way."""
    try:
        import onion.device
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


if __name__ == "__main__":
    sys.exit(main())
