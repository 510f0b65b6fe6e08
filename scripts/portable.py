"""Whether onion runs on a processor without AVX-512, on a machine that has it; ``make portable`` runs it.

    python scripts/portable.py             both parts
    python scripts/portable.py emulated    one of them

native      All tests of tests/models with the AVX2 kernels of MKL and oneDNN, on this very processor. They compute
            what such a processor computes; an instruction that it lacks would work all the same.
emulated    Where it would not: under qemu-user, whose processor has AVX2 and no AVX-512. Tiny networks of both families
            of encoders are trained, tested inside the training, cut off, resumed, saved, evaluated, predicted with and
            embedded, for every task. A step that hangs is ended after a while, and is a failure.

Exit status: 0 if all passed; 1 if anything failed, or there is no emulator and the environment says ``CI``; 77 if there
is none elsewhere: what could be run passed, but the emulated part was not run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter

from emulating.emulator import ENVIRONMENT, NoEmulatorError, emulated
from emulating.processor import described, limited
from emulating.watch import watch

HERE = Path(__file__).parent
ROOT = HERE.parent
PASSED, FAILED, NOT_RUN = 0, 1, 77
"""The last one is what Automake's tests say when they skip."""
PARTS = ("native", "emulated")
FAMILIES = ("bert", "ernie")


def main(words: Sequence[str] | None = None) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{' or '.join(PARTS)}; default: both")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which an emulated step hangs")
    parser.add_argument("--workers", type=int, default=2, help="processes that share the native tests")
    asked = parser.parse_args(words)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {' and '.join(PARTS)}")
    run = {"native": partial(native, asked.workers), "emulated": partial(on_emulator, asked.limit)}
    statuses = []
    for part in asked.parts or PARTS:
        begun = perf_counter()
        statuses.append(run[part]())
        said = {PASSED: "passed", FAILED: "FAILED", NOT_RUN: "NOT RUN"}[statuses[-1]]
        print(f"{part}: {said}, {perf_counter() - begun:.0f} s", flush=True)
    return FAILED if FAILED in statuses else max(statuses)


def native(workers: int) -> int:
    """Run the tests of tests/models by the kernels for AVX2; return the status."""
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", str(workers), "--dist", "loadfile"]
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run([*command, "tests/models"], cwd=ROOT, env=limited(Path(name)), check=False)  # noqa: S603
    return FAILED if done.returncode else PASSED


def on_emulator(limit: float) -> int:
    """Make the journeys of both families, side by side; return the status."""
    try:
        command = emulated("-m", "emulating.journey")
    except NoEmulatorError as error:
        print(f"nothing was run on a processor without AVX-512: {error}", file=sys.stderr)
        return FAILED if os.environ.get("CI") else NOT_RUN
    with ThreadPoolExecutor(len(FAMILIES)) as pool:
        complaints = list(pool.map(partial(_journey, command, limit), FAMILIES))
    return FAILED if any(complaints) else PASSED


def _journey(command: Sequence[str], limit: float, family: str) -> str | None:
    """Run an emulated process to its end; return what was wrong, which has been printed."""
    with tempfile.TemporaryDirectory() as name:
        folder, errors = Path(name), Path(name) / "errors.txt"
        paths = {"PYTHONPATH": os.pathsep.join(map(str, (HERE, ROOT))), "ONION_HOME": str(folder / "home")}
        prepare = [sys.executable, "-W", "ignore:No ccache found", "-m", "emulating.material", family, name]
        subprocess.run(prepare, env={**os.environ, **paths}, cwd=ROOT, check=True)  # noqa: S603
        environment = {**described(folder), **paths, **ENVIRONMENT, "OMP_NUM_THREADS": "1"}
        end = watch([*command, name], environment, folder, errors, limit, partial(_tell, family))
        if end.complaint:
            print(f"{family:8}FAILED    {end.complaint}\n{errors.read_text()}", flush=True)
    return end.complaint


def _tell(family: str, step: str, seconds: float) -> None:
    print(f"{family:8}{seconds:6.1f} s  {step}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
