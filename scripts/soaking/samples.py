"""What is sampled of a process and its files."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "spool": "samples.db",
    "spool_log": "samples.db-wal",
    "journal": "run/journal.jsonl",
    "rejected": "run/rejected.jsonl",
    "log": "log.jsonl",
}


def figures(process: int, folder: Path) -> dict[str, int]:
    """Return bytes of memory, numbers of threads and of open files of a process, and bytes of its files and folder."""
    sizes = {name: _size(folder / file) for name, file in FILES.items()}
    checkpoints = len(list((folder / "run").glob("step-*")))
    return {
        "memory": resident(process),
        "threads": len(list(Path("/proc", str(process), "task").iterdir())),
        "handles": len(list(Path("/proc", str(process), "fd").iterdir())),
        "checkpoints": checkpoints,
        **sizes,
    }


def resident(process: int | str) -> int:
    """Return the bytes of memory that a process has."""
    for line in Path("/proc", str(process), "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"the process {process} has ended")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
