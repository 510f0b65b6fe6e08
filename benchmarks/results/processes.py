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
from benchmarks.results.pieces import Piece, Results, borrows_head, files_of, settings_of
from benchmarks.results.rows import OURS, THEIRS
from scripts.comparison.environments import python_of

MODULES = {OURS: "benchmarks.results.by_onion", THEIRS: "benchmarks.results.hugging_face"}
HEAD = "benchmarks.results.hugging_face.head"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def run(piece: Piece, results: Results) -> dict[str, Any]:
    """Train and measure; return and keep the result.

    Raises:
        FailedError: it did not come to its end.
    """
    results.work.mkdir(parents=True, exist_ok=True)
    log = results.work / results.path(piece).with_suffix(".log").name
    with tempfile.TemporaryDirectory(dir=results.work) as work:
        told = _job(piece, results, Path(work))
        job, answer = Path(work, "job.json"), Path(told["answer"])
        job.write_text(json.dumps(told), encoding="utf-8")
        if borrows_head(piece):
            _run(piece, THEIRS, HEAD, job, log)
        _run(piece, piece.side, MODULES[piece.side], job, log)
        if not answer.is_file():
            raise FailedError(f"{piece}: gave no answer; {end_of(log)}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    result = {**found, "machine": machine.described(), "date": machine.today()}
    results.keep(piece, result)
    log.unlink()
    return result


def _job(piece: Piece, results: Results, work: Path) -> dict[str, Any]:
    """What both sides are told. JSON has no paths, only texts."""
    files = files_of(piece.row, results.data.absolute())
    return {
        **settings_of(piece),
        "train": str(files["train"]),
        "dev": {title: str(path) for title, path in files["dev"].items()},
        "encoder": str(encoders.folder_of(piece.row.encoder, results.data, results.work / "encoders").absolute()),
        "seed": piece.seed,
        "head_file": str(Path(work, "head.npz").absolute()),
        "answer": str(Path(work, "answer.json").absolute()),
    }


def _run(piece: Piece, side: str, module: str, job: Path, log: Path) -> None:
    """Run a module where a side is installed; it leaves what it makes where the job says."""
    python = sys.executable if side == OURS else str(python_of("transformers"))
    threads = {"OMP_NUM_THREADS": str(json.loads(job.read_text(encoding="utf-8"))["threads"])}
    run_logged(piece, [python, "-m", module, str(job.absolute())], OFFLINE | threads, log)
