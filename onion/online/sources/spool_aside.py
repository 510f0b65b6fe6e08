"""The samples of a spool, read without taking them."""

from __future__ import annotations

from onion.online.source import Position
from onion.online.sources.spool import Spool
from onion.online.sources.spool_file import SpoolFile
from onion.online.sources.spool_place import Place

_FIRST = Place(0)


class SpoolAside(Spool):
    """Read a spool from its very first sample on, beside the run that it belongs to, and leave no trace in it.

        provider.source = SpoolAside(Spool("samples.db"))   # what onion replay does

    Args:
        spool: whose samples.

    Raises:
        DataError: at the first read: the first samples have been removed.
    """

    def __init__(self, spool: Spool) -> None:
        super().__init__(spool.path, spool.capacity, spool.keep)
        self._place = _FIRST

    @property
    def position(self) -> Position:
        """The place behind the last sample that was read."""
        return super().position

    @position.setter
    def position(self, position: Position) -> None:
        self._place, self._is_known = Place.parse(position) or _FIRST, False

    def commit(self, position: Position) -> None:
        """Remove nothing."""

    def _opened(self) -> SpoolFile:
        if not self._is_set_up:
            self._origin, self._is_set_up = self._file.origin(), True
        return self._file

    def _tidy(self, idle: bool = False) -> None:
        """Tell nobody how far was read."""
