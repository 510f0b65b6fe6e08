"""The samples of a folder, read without taking them."""

from __future__ import annotations

from time import monotonic, sleep

from onion.online.source import Position, Sample
from onion.online.sources.folder import POLL, Folder, place_of


class FolderAside(Folder):
    """Read the files that a run has taken, from the very first on, and leave everything where it is.

    Args:
        folder: whose files.

    Raises:
        DataError: at the first read: the first files have been removed.
    """

    def __init__(self, folder: Folder) -> None:
        super().__init__(folder.path, folder.keep, folder.settle)
        self._place = (1, 0)

    @property
    def position(self) -> Position:
        """The place behind the last row that was read."""
        return super().position

    @position.setter
    def position(self, position: Position) -> None:
        line, self._origin = place_of(position)
        self._place = line or (1, 0)
        self._forget()

    def read(self, n: int, timeout: float) -> list[Sample]:
        """Return the next rows of what was taken."""
        deadline = monotonic() + timeout
        while True:
            if self._coming is None:
                self._shelf.look()
            if (samples := self._some(n)) or monotonic() >= deadline:
                return samples
            sleep(min(POLL, timeout))

    def commit(self, position: Position) -> None:
        """Put nothing away."""
