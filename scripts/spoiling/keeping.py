"""What a command may leave behind: its output as a whole or not at all, and whole features."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from onion.checkpointing.atomic_files import PARTIAL
from onion.tasks.data.features.store import open_store

Kept = dict[str, dict[str, int]]
"""Each entry of the folder of features -> the sums of its files."""


def kept_features(folder: Path) -> Kept:
    """Return all that a folder of features holds."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return {entry.name: {path.name: zlib.crc32(path.read_bytes()) for path in _files(entry)} for entry in entries}


def faults_of_features(folder: Path, before: Kept) -> Iterator[str]:
    """Tell what is half-written or has changed; remove what is new, so that the next command begins with the same."""
    after = kept_features(folder)
    for name, sums in before.items():
        if after.get(name) != sums:
            yield f"the features {name} have changed"
    for name in after.keys() - before.keys():
        entry = folder / name
        if not _is_whole(entry):
            yield f"the features {name} are not whole"
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def faults_of_output(output: Path, status: int) -> Iterator[str]:
    """Tell what is half-written; of a training that has begun, whole checkpoints may stay."""
    if status and output.exists() and not (output / "run.json").is_file():
        yield f"{output.name} is there"
    yield from (f"{path.name} is left" for path in _files(output) if PARTIAL in path.name)


def remove(output: Path) -> None:
    """Remove what a command has written."""
    shutil.rmtree(output) if output.is_dir() else output.unlink(missing_ok=True)


def _files(place: Path) -> list[Path]:
    return [path for path in sorted(place.rglob("*")) if path.is_file()] if place.is_dir() else [place]


def _is_whole(entry: Path) -> bool:
    if entry.is_dir():
        return open_store(entry) is not None
    try:
        return set(json.loads(entry.read_bytes())) == {"value", "sum"}
    except ValueError:
        return False
