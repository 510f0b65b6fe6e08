"""Paths that stay where they were meant."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def anchored(path: str | PathLike[str]) -> Path:
    """Return a path as it is meant now, so that an ``os.chdir`` in the midst of a run does not lead it elsewhere.

    Whoever keeps a path keeps it so. Links are followed where it is used.
    """
    return Path(path).absolute()


def shortened(path: Path) -> str:
    """Write a path for people, as short as it can be from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # it is elsewhere; or the current folder is gone
        return str(path)
