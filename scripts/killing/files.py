"""The file layer that tells the reaper of bytes, syncs, renames and removals."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from killing.reaper import Reaper, die
from onion.checkpointing.atomic_files import Files
from onion.checkpointing.checkpoint import steps_in


class FatalFiles(Files):
    """The system's files, with a reaper beside them.

    Args:
        reaper: whom to tell.
        folder: of the checkpoints; the reaper tells the parent of each that got its final name.
    """

    def __init__(self, reaper: Reaper, folder: Path) -> None:
        self._reaper, self._folder = reaper, folder
        self._unsynced = False

    def write(self, file: IO[bytes], content: bytes) -> None:
        """Tell of each byte; of those up to the last one, the disk gets what came before."""
        name = "temporary" if isinstance(file.name, int) else Path(file.name).name  # replace_file opens by number
        rest = self._reaper.among(f"{'log' if name.endswith('.jsonl') else 'byte'} {name}", len(content))
        super().write(file, content[:rest])
        if rest is not None:
            file.flush()
            die()

    def sync(self, handle: int) -> None:
        """Tell before and after; and if something was renamed since the last time."""
        if self._unsynced:
            self._unsynced = False
            self._reaper.at("rename unsynced")
        self._reaper.at("sync before")
        super().sync(handle)
        self._reaper.at("sync after")

    def rename(self, source: Path, target: Path) -> None:
        """Tell before and after; and the parent of checkpoints that are there now."""
        self._reaper.at("rename before")
        super().rename(source, target)
        self._unsynced = True
        self._reaper.tell({"saved": max(steps_in(self._folder), default=0)})
        self._reaper.at("rename after")

    def remove(self, folder: Path) -> None:
        """Tell before, after, and when half of the files are gone."""
        self._reaper.at("remove before")
        self._reaper.at("remove half", first=lambda: _halve(folder))
        super().remove(folder)
        self._reaper.at("remove after")


def _halve(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files[: (len(files) + 1) // 2]:
        path.unlink()
