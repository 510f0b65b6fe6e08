"""Output of any size: .npy files written in any order, in a folder that appears complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np

from onion.checkpointing.atomic_files import sync_folder
from onion.errors import DataError


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


def check_new(out: Path) -> None:
    """Refuse a folder that is not empty, since nothing is overwritten.

    Raises:
        DataError: it is not empty, is a file, or cannot be replaced by a folder.
    """
    try:
        if out.is_symlink() or (out.exists() and (not out.is_dir() or os.path.ismount(out))):
            raise DataError(f"{out}: cannot create a folder there; choose a new one.")
        if out.exists() and any(out.iterdir()):
            raise DataError(f"{out}: is not empty, and nothing is overwritten; choose a new folder.")
    except OSError as error:
        raise _not_written(out, error) from None


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to ``out`` at the end, and deleted after an error.

    Raises:
        DataError: writing failed.
    """
    target = Path(os.path.abspath(out))  # noqa: PTH100  resolve() would follow links
    there = next(parent for parent in target.parents if parent.is_dir())  # on the same disk, so that it can be renamed
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name[:40]}.", dir=there) as temporary:
            folder = Path(temporary) / "folder"  # with the default mode of new folders, unlike temporary ones
            folder.mkdir()
            yield folder
            sync_folder(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
            sync_folder(target.parent)
    except OSError as error:
        raise _not_written(out, error) from None


def _not_written(out: Path, error: OSError) -> DataError:
    return DataError(f"{out}: cannot be written: {error.strerror}; nothing was written.")
