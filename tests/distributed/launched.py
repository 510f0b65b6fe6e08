"""Start a script in several processes by Paddle's launcher, in fresh folders, and read what each rank wrote."""

import json
import os
import subprocess
import sys
from pathlib import Path

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
    launcher = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(processes), "--log_dir", str(out / "logs")]
    done = subprocess.run(
        [sys.executable, *(launcher if processes else []), str(script), *words],
        cwd=out,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    (out / "launcher.log").write_text(done.stdout + done.stderr)
    return done


def environment():
    """Return the environment of a process that trains."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def _read(path: Path):
    return json.loads(path.read_text()) if path.exists() else None
