"""Output of any size: .npy files written in any order."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import numpy as np


class NpyFile:
    """A .npy file that is written row by row, in any order, without knowing the number of rows in advance.

    numpy's memory maps (``open_memmap``) need the length before the first row. The format, version 1.0, is that of NEP
    1: a header with type and shape, padded with spaces, then the numbers.

    Args:
        path: the new file.
        kind: the type of the numbers.
        width: numbers per row. Default: the array has one axis only.

    Attributes:
        rows: one more than the last row written.
    """

    START = 128
    _MAGIC = b"\x93NUMPY\x01\x00"

    def __init__(self, path: Path, kind: str, width: int | None = None) -> None:
        self._kind, self._tail = np.dtype(kind), () if width is None else (width,)
        self._size = self._kind.itemsize * (width or 1)
        self.rows = 0
        self._file = path.open("wb")

    def put(self, row: int, values: np.ndarray) -> None:
        """Write consecutive rows from the given one."""
        self._file.seek(self.START + row * self._size)
        self._file.write(np.ascontiguousarray(values, self._kind).tobytes())
        self.rows = max(self.rows, row + len(values))

    def __enter__(self) -> NpyFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file as file:
            if error is None:
                file.seek(0)
                file.write(self._header())
                file.flush()
                os.fsync(file.fileno())

    def _header(self) -> bytes:
        tells = {"descr": self._kind.str, "fortran_order": False, "shape": (self.rows, *self._tail)}
        room = self.START - len(self._MAGIC) - 2
        return self._MAGIC + room.to_bytes(2, "little") + f"{tells!r:<{room - 1}}\n".encode()
