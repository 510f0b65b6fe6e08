"""Arrays that take long to compute, kept in the cache and mapped into memory.

features.json   what they are, and the size of each file
NAME.npy        an array of one axis
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from onion.checkpointing.atomic_files import write_synced
from onion.errors import DataError
from onion.tasks.data.features.cache import features_folder, make_entry, not_written, used_now
from onion.tasks.data.features.store import MANIFEST
from onion.tasks.embedding.npy import NpyFile

FORMAT = "arrays 1"

Arrays = dict[str, NDArray[Any]]


def kept_arrays(key: str, about: Mapping[str, str], make: Callable[[], Iterable[Mapping[str, NDArray[Any]]]]) -> Arrays:
    """Return arrays of the cache; compute them if they are not there.

    They are not read: files of the right size are trusted, so that gigabytes are there in milliseconds.

    Args:
        key: a digest of everything that they depend on.
        about: ``task`` and ``file``, as ``onion cache ls`` shows them.
        make: yields parts of the arrays by name, each to be joined to those before; every array has one axis.

    Raises:
        DataError: the cache cannot be written.
    """
    folder = features_folder() / key
    found = _opened(folder)
    if found is not None:
        used_now(folder)
        return found
    try:
        make_entry(folder, lambda building: _write(building, about, make()), lambda: _opened(folder) is not None)
    except OSError as error:
        raise not_written(error.filename or folder, error) from None
    found = _opened(folder)
    if found is None:
        raise DataError(f"{folder}: the arrays just written cannot be read back; check the disk")
    return found


def _write(folder: Path, about: Mapping[str, str], parts: Iterable[Mapping[str, NDArray[Any]]]) -> None:
    with ExitStack() as held:
        files: dict[str, NpyFile] = {}
        for part in parts:
            for name, values in part.items():
                if name not in files:
                    files[name] = held.enter_context(NpyFile(folder / f"{name}.npy", values.dtype.str))
                files[name].put(files[name].rows, values)
    manifest = {"format": FORMAT, "about": dict(about), "sizes": _sizes(folder)}
    write_synced(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())


def _opened(folder: Path) -> Arrays | None:
    """Map the arrays of a folder; return None if they are missing or damaged."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT or manifest["sizes"] != _sizes(folder):
            return None
        # Plain arrays over the mapped memory: numpy.memmap takes a microsecond more per access.
        return {Path(name).stem: np.asarray(open_memmap(folder / name, mode="r")) for name in manifest["sizes"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
        return None  # MemoryError: an empty file may claim any shape


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.name != MANIFEST}
