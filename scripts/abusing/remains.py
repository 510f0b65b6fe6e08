"""What attacks leave behind: open files, half-written ones, words in the log."""

from __future__ import annotations

import json
from pathlib import Path

from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import PARTIAL
from onion.errors import CheckpointError

LEFT = 8
"""Files that may be open after the attacks besides those before."""

SIGNS = ("Traceback", "ERROR", "CRITICAL")
"""Of an error in a log."""


def handles(process: int) -> int:
    """Return how many files and connections a process has open; -1 where that is not known."""
    folder = Path("/proc", str(process), "fd")
    return len(list(folder.iterdir())) if folder.is_dir() else -1


def half_written(folder: Path) -> list[str]:
    """Return what is not whole of all that a run has written: checkpoints, lines of JSON, what was to be renamed."""
    names = [path.name for path in folder.rglob("*") if path.name.endswith(PARTIAL)]
    names += [path.name for path in folder.glob("step-*") if not _is_whole(path)]
    return sorted(names + [path.name for path in folder.glob("*.jsonl") if not _has_whole_lines(path)])


def _is_whole(folder: Path) -> bool:
    try:
        checkpoint.read(folder)
    except CheckpointError:
        return False
    return True


def _has_whole_lines(path: Path) -> bool:
    content = path.read_bytes()
    try:
        for line in content.splitlines():
            json.loads(line)
    except ValueError:
        return False
    return not content or content.endswith(b"\n")


def complaints(log: Path) -> list[str]:
    """Return the lines of a log with which an error begins, that of a service or of a run."""
    return [line for line in log.read_text(errors="replace").splitlines() if any(sign in line for sign in SIGNS)]
