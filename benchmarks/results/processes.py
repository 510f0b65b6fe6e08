"""Run a piece in a process of its own: ours in this environment, Hugging Face's in the one that parity uses too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.results import encoders, machine
from benchmarks.results.pieces import Piece, Results, files_of, settings_of
from benchmarks.results.rows import OURS
from scripts.comparison.environments import python_of

ROOT = Path(__file__).parents[2]
MODULES = {True: "benchmarks.results.by_onion", False: "benchmarks.results.hugging_face"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
LAST_LINES = 12


class FailedError(Exception):
    """A side did not come to its end; the message says what it last said."""


def run(piece: Piece, results: Results) -> dict[str, Any]:
    """Train and measure; return and keep the result.

    Raises:
        FailedError: it did not come to its end.
    """
    results.folder.mkdir(parents=True, exist_ok=True)
    log = results.path(piece).with_suffix(".log")
    with tempfile.TemporaryDirectory(dir=results.folder) as work:
        job, answer = Path(work, "job.json"), Path(work, "answer.json")
        job.write_text(json.dumps(_job(piece, results, answer)), encoding="utf-8")
        status = _run(piece.side == OURS, job, log)
        if status or not answer.is_file():
            raise FailedError(f"{piece}: ended with status {status}; {log} ends\n{_end_of(log)}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    result = {**found, "machine": machine.described(), "date": machine.today()}
    results.keep(piece, result)
    log.unlink()
    return result


def _job(piece: Piece, results: Results, answer: Path) -> dict[str, Any]:
    """What both sides are told. JSON has no paths, only texts."""
    files = files_of(piece.row, results.data.absolute())
    return {
        **settings_of(piece.row),
        "train": str(files["train"]),
        "dev": {title: str(path) for title, path in files["dev"].items()},
        "encoder": str(encoders.folder_of(piece.row.encoder, results.data, results.folder / "encoders").absolute()),
        "seed": piece.seed,
        "answer": str(answer.absolute()),
    }


def _run(ours: bool, job: Path, log: Path) -> int:
    """The exit status of a side, which leaves its answer where the job says."""
    python = sys.executable if ours else str(python_of("transformers"))
    threads = {"OMP_NUM_THREADS": str(json.loads(job.read_text(encoding="utf-8"))["threads"])}
    with log.open("wb") as file:
        command = [python, "-m", MODULES[ours], str(job.absolute())]
        environment = os.environ | OFFLINE | threads
        return subprocess.run(command, cwd=ROOT, env=environment, stdout=file, stderr=file).returncode


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])
