"""The files of a run's folder: their names, and how they are read and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onion.checkpointing.atomic_files import read_file, replace_file
from onion.errors import CheckpointError

RUN_FILE, SETTINGS_FILE, TASK_FILE = "run.json", "settings.json", "task.json"
DRAWINGS = ("onion.txt", "onion.svg")
FROZEN = "frozen.safetensors"
"""Of a training with adapters: the encoder without them (``adapters.py``)."""


def read_json(folder: Path, name: str) -> Any:
    """Read a JSON file that a training wrote.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    try:
        return json.loads(read_file(folder / name))
    except (OSError, ValueError, RecursionError):
        raise no_run(folder, name) from None


def no_run(folder: Path, name: str) -> CheckpointError:
    """Return the error of a folder without a file that a training writes."""
    return CheckpointError(f"{folder} holds no run of onion ({name} is missing or damaged); train first.")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically, and create its folder if missing.

    Raises:
        CheckpointError: writing failed.
    """
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, and create its folder if missing.

    Raises:
        CheckpointError: writing failed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        raise CheckpointError(f"cannot write {path}: {error.strerror}.") from None
