"""A folder of results that appears complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onion.checkpointing.atomic_files import sync_files, sync_folder
from onion.errors import DataError


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
            sync_files(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(target)
            sync_folder(target.parent)
    except OSError as error:
        raise _not_written(out, error) from None


def _not_written(out: Path, error: OSError) -> DataError:
    return DataError(f"{out}: cannot be written: {error.strerror}; nothing was written.")
