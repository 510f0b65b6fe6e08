"""Columns in files, written chunk by chunk and read by memory mapping, so that neither needs much memory.

features.json      format, fields, description, notes, checksum of each file
FIELD.npy          the values of a field
FIELD.starts.npy   where each example's values start, if the field is an array
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap, read_array

from onion.checkpointing.atomic_files import write_synced
from onion.errors import DataError
from onion.tasks.data.features.examples import Column, Example, Examples, columns_of
from onion.tasks.embedding.npy import NpyFile

MANIFEST = "features.json"
FORMAT = 1
PIECE = 1 << 20


def write_store(
    folder: Path, chunks: Iterable[list[Example]], notes: Counter[str], about: Mapping[str, str] | None = None
) -> bool:
    """Write examples into a folder; return whether there were any.

    Args:
        folder: an empty folder.
        chunks: lists of examples; the first is not empty. Their rows are numbered over all chunks.
        notes: read after all chunks have been written.
        about: a description for users; see :func:`about_store`.

    Raises:
        DataError: the examples have different fields or types.
        OSError: writing failed.
    """
    with ExitStack() as held:
        writers: dict[str, _Writer] = {}
        for chunk in chunks:
            columns = columns_of(chunk) if chunk else {}
            if writers and columns and writers.keys() != columns.keys():
                raise DataError(f"all examples must have the same fields; some have {', '.join(columns)}")
            for name, column in columns.items():
                if name not in writers:
                    writers[name] = _Writer(folder, name, column, held)
                writers[name].append(column)
        fields = {name: writer.ragged for name, writer in writers.items()}
    told = {"about": dict(about or {}), "notes": dict(notes)}
    manifest = {"format": FORMAT, "fields": fields, **told, "sums": _sums(folder)}
    write_synced(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())
    return bool(fields)


def open_store(folder: Path) -> Examples | None:
    """Map the examples of a folder into memory; return None if they are missing or damaged."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT or manifest["sums"] != _sums(folder):
            return None
        fields = manifest["fields"].items()
        if not all(f"{name}.npy" in manifest["sums"] for name, _ in fields):  # a name must not lead out of the folder
            return None
        columns = {name: _column(folder, name, ragged) for name, ragged in fields}
        return Examples(columns, manifest["notes"]) if columns else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
        return None  # MemoryError: an empty file may claim any shape


def about_store(folder: Path) -> dict[str, str]:
    """Return the description of a folder's examples, empty if there is none."""
    try:
        about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["about"]
        return {str(name): str(value) for name, value in about.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _sums(folder: Path) -> dict[str, int]:
    """Return the CRC-32 of every file except the manifest; takes 0.1 s for a few hundred megabytes."""
    return {path.name: _sum(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST}


def _sum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            found = zlib.crc32(piece, found)
    return found


def _column(folder: Path, name: str, ragged: bool) -> Column:
    return Column(_numbers(folder / f"{name}.npy"), _numbers(folder / f"{name}.starts.npy") if ragged else None)


def _numbers(path: Path) -> np.ndarray:
    # Not np.load, which also reads zip files and then returns something other than an array.
    if path.stat().st_size > NpyFile.START:
        # A plain array over the mapped memory: numpy.memmap takes a microsecond more per example.
        return np.asarray(open_memmap(path, mode="r"))
    with path.open("rb") as file:  # has no values, so it cannot be mapped
        return read_array(file, allow_pickle=False)


class _Writer:
    """Appends columns to the files of one field, which are complete once ``held`` is closed."""

    def __init__(self, folder: Path, name: str, first: Column, held: ExitStack) -> None:
        self._name = name
        shape = first.values.shape[1:]
        if len(shape) > 1:
            raise DataError(f"the field {name!r} has {1 + len(shape)} axes; at most 2 can be stored")
        self._values = held.enter_context(NpyFile(folder / f"{name}.npy", first.values.dtype.str, *shape))
        self._starts = None
        if first.starts is not None:
            self._starts = held.enter_context(NpyFile(folder / f"{name}.starts.npy", "<i8"))
            self._starts.put(0, np.zeros(1, np.int64))
        self._first = first

    @property
    def ragged(self) -> bool:
        return self._starts is not None

    def append(self, column: Column) -> None:
        if not column.like(self._first):
            raise DataError(f"the field {self._name!r} differs in type or axes between examples")
        before = self._values.rows
        self._values.put(before, column.values)
        if self._starts is not None and column.starts is not None:
            self._starts.put(self._starts.rows, before + column.starts[1:])
