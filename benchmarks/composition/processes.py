"""Run a piece in a process of its own; its last line of JSON is its report."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import machine
from benchmarks.common.processes import FailedError, end_of, run_logged
from benchmarks.common.worker import version_of
from benchmarks.composition.compared import THREADS
from benchmarks.composition.pieces import Piece, Results

PADDLE = "paddlepaddle"


def run(piece: Piece, results: Results) -> dict[str, Any]:
    """Run a piece from its beginning; return and keep its result.

    Raises:
        FailedError: what it needs is not there, it did not come to its end, or its report lacks a figure.
    """
    for need in piece.needs:
        if results.read(need) is None:
            raise FailedError(f"{piece}: needs what {need} leaves, which has not come to its end")
    shutil.rmtree(results.run_folder(piece), ignore_errors=True)  # or an interrupted run would go on there
    results.run_folder(piece).parent.mkdir(parents=True, exist_ok=True)
    log = results.path(piece).with_suffix(".log")
    run_logged(piece, [sys.executable, *results.command(piece)], {"OMP_NUM_THREADS": str(THREADS)}, log)
    report = last_object(log)
    lacks = [name for name in (*(each.name for each in piece.example.figures), "seconds") if name not in report]
    if lacks:
        raise FailedError(f"{piece}: its last line of JSON has no {lacks[0]!r}; {end_of(log)}")
    told = {"machine": machine.described(), "date": machine.today(), "versions": {PADDLE: version_of(PADDLE)}}
    results.keep(piece, {"report": report, **told})
    log.unlink()
    if not piece.needed:
        shutil.rmtree(results.run_folder(piece), ignore_errors=True)
    return {"report": report, **told}


def last_object(log: Path) -> dict[str, Any]:
    """Return the last line of a log that is a JSON object; an empty one if there is none."""
    for line in reversed(log.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}
