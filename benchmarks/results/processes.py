"""Run a piece in a process of its own: ours in this environment, Hugging Face's in the one that parity uses too."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import machine
from benchmarks.common.processes import FailedError, end_of, run_logged
from benchmarks.results import encoders
from benchmarks.results.pieces import Piece, Results, files_of, settings_of
from benchmarks.results.rows import OURS
from scripts.comparison.environments import python_of

MODULES = {True: "benchmarks.results.by_onion", False: "benchmarks.results.hugging_face"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def run(piece: Piece, results: Results) -> dict[str, Any]:
    """Train and measure; return and keep the result.

    Raises:
        FailedError: it did not come to its end.
    """
    results.work.mkdir(parents=True, exist_ok=True)
    log = results.work / results.path(piece).with_suffix(".log").name
    with tempfile.TemporaryDirectory(dir=results.work) as work:
        job, answer = Path(work, "job.json"), Path(work, "answer.json")
        job.write_text(json.dumps(_job(piece, results, answer)), encoding="utf-8")
        _run(piece, job, log)
        if not answer.is_file():
            raise FailedError(f"{piece}: gave no answer; {end_of(log)}")
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
        "encoder": str(encoders.folder_of(piece.row.encoder, results.data, results.work / "encoders").absolute()),
        "seed": piece.seed,
        "answer": str(answer.absolute()),
    }


def _run(piece: Piece, job: Path, log: Path) -> None:
    """Run a side, which leaves its answer where the job says."""
    ours = piece.side == OURS
    python = sys.executable if ours else str(python_of("transformers"))
    threads = {"OMP_NUM_THREADS": str(json.loads(job.read_text(encoding="utf-8"))["threads"])}
    run_logged(piece, [python, "-m", MODULES[ours], str(job.absolute())], OFFLINE | threads, log)
