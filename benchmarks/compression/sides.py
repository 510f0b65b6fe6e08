"""A run, and the forms in which it can be exported, beside the run that it was made of: figures, sizes, times.

    python -m benchmarks.compression.sides TEACHER RUN TRAIN DEV WORK

One line of JSON: form -> figures on DEV, megabytes, seconds for 1,000 texts, times faster than the teacher as onion
predicts with it, the share of rows whose prediction changed from the teacher's. "Fewer tokens" are those of TRAIN;
static ranges are measured on its first rows.
All predict the same rows in turns, from text to label, by one thread; the shortest time of each counts.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from onion.device import use_threads
from onion.tasks.export.export import export
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.teaching.comparison import figures, predicted_in_turns

FORMS: Mapping[str, Mapping[str, Any]] = {
    "32 bits": {},
    "32 bits, fewer tokens": {"vocab": True},
    "8 bits, dynamic": {"int8": "dynamic"},
    "8 bits, static": {"int8": "static"},
}
ROWS, CALIBRATION = 200, 256
DECIMALS = 4
TEACHER, RUN = "teacher", "Paddle"
"""The run that was compressed, and what came of it, as onion predicts with runs."""


def main(teacher: str, run: str, train: str, dev: str, work: str) -> None:
    """Export, measure and print."""
    use_threads(1)
    sides = {TEACHER: Predictor.load(teacher), RUN: Predictor.load(run)}
    task = sides[TEACHER].task
    with tempfile.TemporaryDirectory(dir=work) as folder:
        rows = Path(folder) / "calibration.jsonl"
        some = islice(task.rows(train, labelled=False), CALIBRATION)
        rows.write_text("".join(json.dumps(row.cells, ensure_ascii=False) + "\n" for row in some), encoding="utf-8")
        for name, form in FORMS.items():
            static = form.get("int8") == "static"
            files = {"vocab": train if form.get("vocab") else None, "calibrate": rows if static else None}
            export(run, Path(folder) / name, **{**form, **files})
            sides[name] = Predictor.load(Path(folder) / name, threads=1)
        seconds, predicted = predicted_in_turns(sides, dev, ROWS)
        found = {name: _figures(side, dev) for name, side in sides.items()}
        for name in sides:
            found[name]["seconds_per_1000"] = seconds[name]
            found[name]["times_faster"] = seconds[TEACHER] / seconds[name]
        for name in FORMS:
            found[name]["megabytes"] = (Path(folder) / name / "model.onnx").stat().st_size / 1e6
    for name in sides:
        pairs = zip(predicted[TEACHER], predicted[name], strict=True)
        changed = sum(theirs["label"] != ours["label"] for theirs, ours in pairs)
        found[name]["changed"] = changed / len(predicted[name])
    print(json.dumps(found))


def _figures(side: Predictor, dev: str) -> dict[str, float]:
    return {name: round(value, DECIMALS) for name, value in figures(side, dev).items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
