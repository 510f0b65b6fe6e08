"""What a search leaves for people and programs: the best settings, a report and a table of the trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onion.tasks.finetune.run_files import SETTINGS_FILE, write_json, write_text
from onion.tasks.tuning.study import Study
from onion.text_formats import csv_lines

BEST_FILE, REPORT_FILE, TABLE_FILE = "best.json", "tune.json", "trials.csv"


def folder_of(output: Path, number: int) -> Path:
    """Return the folder of a trial."""
    return output / "trials" / f"{number:04d}"


def report(study: Study, monitor: str) -> dict[str, Any]:
    """Return the best trial, its value and its parameters (None: none was completed), and how many trials there are."""
    states = [trial.state.name.lower() for trial in study.trials()]
    counts = {"trials": len(states), "pruned": states.count("pruned"), "failed": states.count("fail")}
    best = study.best()
    if best is None:
        return {"trial": None, monitor: None, "params": None, **counts}
    return {"trial": best.number, monitor: best.value, "params": best.params, **counts}


def table(study: Study, monitor: str) -> list[dict[str, Any]]:
    """Return a row for each finished trial; of a pruned one, the last figure."""
    return [
        {
            "trial": trial.number,
            "state": trial.state.name.lower(),
            monitor: trial.value,
            **trial.params,
            "tests": len(trial.intermediate_values),
            "error": trial.user_attrs.get("error"),
        }
        for trial in study.trials()
    ]


def write_results(study: Study, monitor: str, output: Path) -> None:
    """Write the results so far, each file as a whole.

    Raises:
        CheckpointError: writing failed.
    """
    rows, best = table(study, monitor), study.best()
    write_json(output / REPORT_FILE, {**report(study, monitor), "table": rows})
    write_text(output / TABLE_FILE, "".join(f"{line}\n" for line in csv_lines(rows)))
    if best is not None:
        settings = folder_of(output, best.number) / SETTINGS_FILE
        write_text(output / BEST_FILE, settings.read_text(encoding="utf-8"))
