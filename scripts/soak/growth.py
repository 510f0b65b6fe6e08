"""What is sampled of a process and its files, and by how much a line through the samples rises in a day."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

FILES = {
    "spool": "samples.db",
    "spool_log": "samples.db-wal",
    "journal": "run/journal.jsonl",
    "rejected": "run/rejected.jsonl",
    "log": "log.jsonl",
}


def figures(process: int, folder: Path) -> dict[str, int]:
    """Return bytes of memory, numbers of threads and of open files of a process, and bytes of its files and folder."""
    files = {name: folder / file for name, file in FILES.items()}
    return {
        "memory": resident(process),
        "threads": len(list(Path("/proc", str(process), "task").iterdir())),
        "handles": len(list(Path("/proc", str(process), "fd").iterdir())),
        "checkpoints": len(list((folder / "run").glob("step-*"))),
        **{name: path.stat().st_size if path.exists() else 0 for name, path in files.items()},
    }


def resident(process: int | str) -> int:
    for line in Path("/proc", str(process), "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"the process {process} has ended")


SETTLED = 0.25
"""The part of a run after which it has filled what it fills once: buffers, windows, the spool, pools of memory."""


def rise(steps: Sequence[int], values: Sequence[float], day: int) -> float:
    """Return how much a straight line through the settled samples (least squares) rises in ``day`` batches.

    Raises:
        ValueError: there are fewer than three samples in the settled part.
    """
    settled = np.asarray(steps, float) >= SETTLED * steps[-1]
    if settled.sum() < 3:
        raise ValueError(f"{settled.sum()} samples are too few for a line; let it run for longer.")
    slope, _ = np.polyfit(np.asarray(steps, float)[settled], np.asarray(values, float)[settled], 1)
    return float(slope) * day
