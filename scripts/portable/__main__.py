"""Whether onion runs on a processor without AVX-512, on a machine that has it; ``make portable`` runs it.

    python -m scripts.portable             both parts
    python -m scripts.portable emulated    one of them

native      All tests of tests/models with the AVX2 kernels of MKL and oneDNN, on this processor. They compute what
            such a processor computes, but an instruction that it lacks would work all the same. Unless it is named,
            it is left out on a processor that has no other kernels: there `make test` has run them so.
emulated    Under qemu-user, whose processor has AVX2 and no AVX-512: tiny networks of both families of encoders are
            trained, tested, interrupted, resumed, saved, evaluated, predicted with and embedded, for every task. A step
            that hangs is a failure.

Exit status: 0 if all passed; 1 if anything failed, or there is no emulator and the environment says ``CI``; 77 if there
is no emulator elsewhere: the emulated part was not run.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Timer
from time import perf_counter

from onion.host import math_library
from scripts.console import parser_of

ROOT = Path(__file__).parents[2]
PASSED, FAILED, NOT_RUN = 0, 1, 77
"""The last one is what Automake's tests say when they skip."""
PARTS = ("native", "emulated")
FAMILIES = ("bert", "ernie")


def main(words: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{' or '.join(PARTS)}; default: both")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which an emulated step hangs")
    parser.add_argument("--workers", type=int, default=2, help="processes that share the native tests")
    asked = parser.parse_args(words)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {' and '.join(PARTS)}")
    run = {"native": partial(native, asked.workers), "emulated": partial(on_emulator, asked.limit)}
    statuses = []
    for part in asked.parts or _default_parts():
        begun = perf_counter()
        statuses.append(run[part]())
        said = {PASSED: "passed", FAILED: "FAILED", NOT_RUN: "NOT RUN"}[statuses[-1]]
        print(f"{part}: {said}, {perf_counter() - begun:.0f} s", flush=True)
    return FAILED if FAILED in statuses else max(statuses)


def _default_parts(cpuinfo: Path = math_library.CPUINFO) -> Sequence[str]:
    """Return the parts that show something which `make test` on this processor does not."""
    if math_library.kernels_for(cpuinfo) != math_library.AVX2:
        return PARTS
    print("native: left out, make test runs these tests with the same kernels: this processor has no AVX-512")
    return [part for part in PARTS if part != "native"]


def native(workers: int) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", str(workers), "--dist", "loadfile"]
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run([*command, "tests/models"], cwd=ROOT, env=limited(Path(name)), check=False)
    return FAILED if done.returncode else PASSED


def on_emulator(limit: float) -> int:
    """Make the journeys of both families, side by side; return the status."""
    try:
        command = emulated("-m", "scripts.portable.journey")
    except NoEmulatorError as error:
        print(f"nothing was run on a processor without AVX-512: {error}", file=sys.stderr)
        return FAILED if os.environ.get("CI") else NOT_RUN
    with ThreadPoolExecutor(len(FAMILIES)) as pool:
        complaints = list(pool.map(partial(_journey, command, limit), FAMILIES))
    return FAILED if any(complaints) else PASSED


def _journey(command: Sequence[str], limit: float, family: str) -> str | None:
    """Run an emulated process to its end; return what was wrong, which has been printed."""

    def tell(step: str, seconds: float) -> None:
        print(f"{family:8}{seconds:6.1f} s  {step}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder, errors = Path(name), Path(name) / "errors.txt"
        paths = {"PYTHONPATH": str(ROOT), "ONION_HOME": str(folder / "home")}
        prepare = [sys.executable, "-W", "ignore:No ccache found", "-m", "scripts.portable.material", family, name]
        subprocess.run(prepare, env={**os.environ, **paths}, cwd=ROOT, check=True)
        environment = {**described(folder), **paths, **ENVIRONMENT, "OMP_NUM_THREADS": "1"}
        end = watch([*command, name], environment, folder, errors, limit, tell)
        if end.complaint:
            print(f"{family:8}FAILED    {end.complaint}\n{errors.read_text()}", flush=True)
    return end.complaint


EMULATOR = "qemu-x86_64"
PROCESSOR = "max"
"""All that qemu can emulate: AVX2 and FMA, nothing of AVX-512; the emulated process checks that itself."""

ENVIRONMENT = {"NPY_DISABLE_CPU_FEATURES": "AVX2 X86_V3"}
"""NumPy's sorts for AVX2 give wrong orders under qemu 7.2, and right ones on a processor; NumPy's plain ones are right
on both. Its newer versions have the second name for them."""


class NoEmulatorError(Exception):
    """There is none; the message says what to do."""


def emulated(*words: str) -> list[str]:
    """Return the command that runs this Python with these arguments on the emulated processor.

    Raises:
        NoEmulatorError: it is not installed, or could not run this Python.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoEmulatorError(f"{EMULATOR} runs programs for Linux on x86-64 only, and this Python is another one")
    program = shutil.which(EMULATOR)
    if program is None:
        raise NoEmulatorError(f"{EMULATOR} is not installed; on Debian or Ubuntu: apt-get install qemu-user")
    return [program, "-cpu", PROCESSOR, sys.executable, *words]


CPUINFO = """\
processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AVX2 without AVX-512
flags\t\t: fpu sse sse2 pni ssse3 fma sse4_1 sse4_2 movbe popcnt aes avx f16c bmi1 avx2 bmi2
"""
CHOSEN = ("MKL_DEBUG_CPU_TYPE", "ONEDNN_MAX_CPU_ISA")
"""Which kernels the math libraries take: MKL's number for AMD processors, and oneDNN's limit."""


def described(folder: Path) -> dict[str, str]:
    """Return our environment, with a description of such a processor that is written into a folder.

    Under qemu-user /proc/cpuinfo is that of the machine, whatever is emulated. What this process has chosen for the
    machine's own processor is left out, so that onion chooses again.
    """
    path = folder / "cpuinfo"
    path.write_text(CPUINFO, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name not in CHOSEN}
    return {**kept, "ONION_CPUINFO": str(path)}


def limited(folder: Path) -> dict[str, str]:
    """Return the same, with the math libraries held to their kernels for AVX2 on the machine's own processor."""
    return {**described(folder), **dict(zip(CHOSEN, ("5", "AVX2"), strict=True))}


@dataclass(frozen=True)
class End:
    """How a process ended: its last step, status or minus the signal, whether it was ended for its silence."""

    step: str
    code: int
    late: bool

    @property
    def complaint(self) -> str | None:
        if self.late and self.code:  # else it ended by itself at the last moment
            return f"{self.step!r} hangs: it did not end in time"
        if self.code < 0:
            name = signal.strsignal(-self.code) or "a signal"
            why = ": the processor lacks an instruction that was met there" if self.code == -signal.SIGILL else ""
            return f"{self.step!r} was ended by signal {-self.code} ({name}){why}"
        return f"{self.step!r} failed with exit status {self.code}" if self.code else None


def watch(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    errors: Path,
    limit: float,
    tell: Callable[[str, float], None],
) -> End:
    """Run a process, which prints a line before each step, to its end or until a step exceeds ``limit`` seconds.

    Standard error goes to the file ``errors``; ``tell`` is called with each finished step and its seconds.
    """
    step, begun, late = "started", perf_counter(), False

    def end() -> None:
        nonlocal late
        late = True
        process.kill()

    with (
        errors.open("w") as words,
        subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=words, text=True
        ) as process,
    ):
        assert process.stdout is not None
        timer = _started(limit, end)
        for line in process.stdout:
            timer.cancel()
            tell(step, perf_counter() - begun)
            step, begun, timer = line.rstrip("\n"), perf_counter(), _started(limit, end)
        code = process.wait()
        timer.cancel()
    if code == 0:
        tell(step, perf_counter() - begun)
    return End(step, code, late)


def _started(seconds: float, act: Callable[[], None]) -> Timer:
    timer = Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


if __name__ == "__main__":
    sys.exit(main())
