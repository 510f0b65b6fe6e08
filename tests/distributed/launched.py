"""Start a script in several processes by Paddle's launcher, in fresh folders, and read what each rank wrote."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.patience import PATIENCE

JOB = ROOT / "tests" / "distributed" / "job.py"


def ranks(folder, processes, script=JOB, **arguments):
    """Run a script; return what each rank wrote into its rank-R.json, None for one that wrote nothing.

    Args:
        folder: a new folder is made in it.
        processes: how many; 0: one, without a launcher.
        script: takes JSON as its only argument.
        arguments: of the script, besides ``out``.
    """
    out = folder / f"world-{len([*folder.iterdir()])}"
    out.mkdir(parents=True)
    done = launched(out, processes, script, json.dumps({"out": str(out), **arguments}, default=str))
    found = [_read(out / f"rank-{rank}.json") for rank in range(max(1, processes))]
    assert any(found), done.stdout + done.stderr
    return found


def launched(out, processes, script, *words):
    """Run a script in a folder by Paddle's launcher, or without it for 0 processes; return how it ended."""
    command, options = _command(out, processes, script, *words)
    done = subprocess.run(command, **options, capture_output=True, text=True, timeout=PATIENCE, check=False)
    (out / "launcher.log").write_text(done.stdout + done.stderr)
    return done


def environment():
    """Return the environment of a process that trains."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


@contextmanager
def launching(out, processes, script, *words):
    """Start a script as ``launched`` does; what goes on at the end is ended."""
    command, options = _command(out, processes, script, *words)
    with (out / "launcher.log").open("wb") as log, subprocess.Popen(command, **options, stdout=log, stderr=log) as job:
        try:
            yield job
        finally:
            job.terminate()


def appeared(path, job):
    """Return the text of a file, once there is some."""
    while not (path.exists() and path.stat().st_size):
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the job has ended with {job.wait(0.1)} and has not written {path}")
    return path.read_text()


def _command(out, processes, script, *words):
    launcher = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(processes), "--log_dir", str(out / "logs")]
    command = [sys.executable, *(launcher if processes else []), str(script), *words]
    return command, {"cwd": out, "env": environment()}


def _read(path: Path):
    return json.loads(path.read_text()) if path.exists() else None
