"""onion on an emulated ARM processor: tests, a training cut and resumed to the bit, every task; ``make arm`` runs it.

Debian's Python for arm64 and the wheels for it are unpacked into a folder (``$ONION_ARM``, or ``onion-arm`` in the
user's cache; 0.8 GB) and run by qemu-user. Nothing is installed into this system, and root is not needed.

Exit status: 0 if all passed; 1 if anything failed, or the emulation is not available and the environment says ``CI``;
77 if it is not available elsewhere. Then a line says why.
"""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.portable.__main__ import FAILED, FAMILIES, NOT_RUN, PASSED, ROOT

PACKAGES = ["python3-minimal", "libpython3-stdlib", "libgomp1", "libgfortran5", "libstdc++6"]
NEEDED_BY_TESTS = ["pytest>=8", "hypothesis>=6.85"]
EXTRAS = ["cpu", "metrics"]
PLATFORMS = ["manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64"]
TESTS = [
    *("engine", "test_rules.py", "checkpointing", "items/test_saver.py", "data/test_loader.py", "data/test_files.py"),
    *("models/test_encoder.py", "models/fused", "tasks/finetune/test_fine_tune.py"),
]
NOT_EMULATED = "tests/models/fused/training/test_runtime.py::test_a_forked_process_has_threads_of_its_own"
"""qemu-user 7.2 itself aborts in a forked process that starts threads."""


class NotAvailableError(Exception):
    """The emulation is not available here; the message says what is missing."""


def main(tests: list[str]) -> int:
    """Set the emulation up, unless it is there; run tests, those of `TESTS` by default, and what shows the whole."""
    try:
        python = emulated_python(home())
    except NotAvailableError as error:
        print(f"arm: nothing was run: {error}", file=sys.stderr)
        return FAILED if os.environ.get("CI") else NOT_RUN
    chosen = tests or [f"tests/{name}" for name in TESTS]
    failed = [
        not _passes(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--deselect", NOT_EMULATED, *chosen),
        not _passes(python, ".ci/resume_a_little.py"),
        *(not _every_task(python, family) for family in FAMILIES),
    ]
    return FAILED if any(failed) else PASSED


def _every_task(python: Path, family: str) -> bool:
    """Make the journey of ``make portable``: each task trained, cut, resumed, evaluated, predicted with, embedded."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {"PYTHONPATH": str(ROOT), "ONION_HOME": f"{folder}/home"}
        prepared = _passes(sys.executable, "-W", "ignore", "-m", "scripts.portable.material", family, folder, **paths)
        return prepared and _passes(python, "-m", "scripts.portable.journey", folder, **paths)


def _passes(*command: str | Path, **variables: str) -> bool:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def home() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ONION_ARM") or cache / "onion-arm").absolute()


def emulated_python(folder: Path) -> Path:
    """Return a command that is Python on ARM, with onion and all that it needs.

    Raises:
        NotAvailableError: a tool is missing, or a package cannot be fetched.
    """
    for tool, package in {"qemu-aarch64": "qemu-user", "apt-get": "apt", "dpkg-deb": "dpkg"}.items():
        if shutil.which(tool) is None:
            raise NotAvailableError(f"{tool} is missing; on Debian and Ubuntu: apt-get install {package}")
    system, python, ready = folder / "system", folder / "python", folder / "ready"
    wanted = " ".join([*PACKAGES, *_requirements()])
    if not (ready.is_file() and ready.read_text(encoding="utf-8") == wanted):
        print(f"arm: unpacking Debian's Python and wheels for it into {folder}", file=sys.stderr, flush=True)
        ready.unlink(missing_ok=True)
        for before in (system, folder / "apt"):
            shutil.rmtree(before, ignore_errors=True)
        _unpack(system, folder / "apt")
        _write_command(python, system)
        version = _run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        platforms = [f"--platform={name}" for name in PLATFORMS]
        _pip(system, "--only-binary=:all:", *platforms, "--python-version", version, *_requirements())
        ready.write_text(wanted, encoding="utf-8")
    _pip(system, "--no-deps", "--no-build-isolation", "--upgrade", "--editable", str(ROOT))
    return python


def _unpack(system: Path, apt: Path) -> None:
    """Fetch packages for arm64 as this system's apt is set up, with lists of its own, and unpack them."""
    for name in ("lists/partial", "archives/partial"):
        (apt / name).mkdir(parents=True)
    (apt / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
        "Dir::State::Lists": apt / "lists",
        "Dir::State::Status": apt / "status",
        "Dir::Cache": apt,
        "Dir::Cache::Archives": apt / "archives",
    }
    command = ["apt-get", "--quiet=2", *(f"--option={name}={value}" for name, value in settings.items())]
    _run([*command, "update"])
    _run([*command, "--yes", "--no-install-recommends", "--download-only", "install", *PACKAGES])
    for package in sorted((apt / "archives").glob("*.deb")):
        _run(["dpkg-deb", "--extract", package, system])
    shutil.rmtree(apt)


def _write_command(python: Path, system: Path) -> None:
    """Write the command, and make it ``sys.executable``, which processes start that are no emulators."""
    qemu = [shutil.which("qemu-aarch64"), "-L", system, system / "usr" / "bin" / "python3"]
    python.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, qemu))} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    _packages(system).mkdir(parents=True, exist_ok=True)
    begin = f"import sys; sys.executable = {str(python)!r}\n"
    (_packages(system) / "emulated.pth").write_text(begin, encoding="utf-8")


def _requirements() -> list[str]:
    """What setup.cfg names, and what the tests need."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = [settings["options.extras_require"][name] for name in EXTRAS]
    named = [settings["options"]["install_requires"], *extras]
    return [*" ".join(named).split(), *NEEDED_BY_TESTS]


def _pip(system: Path, *words: str) -> None:
    target = ["--quiet", "--disable-pip-version-check", "--target", str(_packages(system))]
    _run([sys.executable, "-m", "pip", "install", *target, *words])


def _packages(system: Path) -> Path:
    return system / "usr" / "lib" / "python3" / "dist-packages"


def _run(command: list[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotAvailableError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-1000:]}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
