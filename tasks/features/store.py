"""Columns in files: written a chunk at a time, read by mapping them into memory, so neither takes memory that grows.

features.json      format, fields, number of examples, notes, size of every file
FIELD.npy          its values
FIELD.starts.npy   where each example's begin, if the field is an array
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from onion.disk import write_synced
from onion.tasks.features.examples import Column, Example, Examples
from onion.tasks.npy import NpyFile

MANIFEST = "features.json"
FORMAT = 1


def write_store(folder: Path, chunks: Iterable[list[Example]], notes: Counter[str]) -> None:
    """Write examples into a new folder.

    Args:
        folder: an empty one.
        chunks: the examples, some at a time; at least one. Their rows are numbered over all chunks.
        notes: read when all chunks have been written.

    Raises:
        OSError: the disk refused.
    """
    with ExitStack() as held:
        writers: dict[str, _Writer] = {}
        for chunk in chunks:
            if not chunk:
                continue
            for name in chunk[0]:
                column = Column.of([example[name] for example in chunk])
                if name not in writers:
                    writers[name] = held.enter_context(_Writer(folder, name, column))
                writers[name].append(column)
        counts = {name: writer.examples for name, writer in writers.items()}
        ragged = {name: writer.ragged for name, writer in writers.items()}
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    manifest = {"format": FORMAT, "examples": max(counts.values(), default=0), "fields": ragged}
    text = json.dumps({**manifest, "notes": dict(notes), "sizes": sizes}, indent=1, ensure_ascii=False)
    write_synced(folder / MANIFEST, text.encode())


def open_store(folder: Path) -> Examples | None:
    """Map the examples of a folder into memory; None if they are not there as they were written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT or manifest["sizes"] != _sizes(folder, manifest["sizes"]):
            return None
        columns = {name: _column(folder, name, ragged) for name, ragged in manifest["fields"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Examples(columns, manifest["notes"])


def _sizes(folder: Path, names: Iterable[str]) -> Mapping[str, int]:
    return {name: (folder / name).stat().st_size for name in names}


def _column(folder: Path, name: str, ragged: bool) -> Column:
    # A file without any value cannot be mapped.
    values, starts = folder / f"{name}.npy", folder / f"{name}.starts.npy"
    mapped = np.load(values, mmap_mode="r" if values.stat().st_size > NpyFile.START else None)
    # Mapped arrays are slow to take single numbers from; the starts are 8 bytes an example.
    return Column(mapped, np.load(starts)) if ragged else Column(np.asarray(mapped))


class _Writer:
    """Appends columns to the files of one field."""

    def __init__(self, folder: Path, name: str, first: Column) -> None:
        shape = first.values.shape[1:]
        self._values = NpyFile(folder / f"{name}.npy", first.values.dtype.str, *shape)
        self._starts = None if first.starts is None else NpyFile(folder / f"{name}.starts.npy", "<i8")
        if self._starts is not None:
            self._starts.put(0, np.zeros(1, np.int64))
        self.examples = 0

    @property
    def ragged(self) -> bool:
        return self._starts is not None

    def append(self, column: Column) -> None:
        before = self._values.rows
        self._values.put(before, column.values)
        if self._starts is not None and column.starts is not None:
            self._starts.put(self._starts.rows, before + column.starts[1:])
        self.examples += len(column)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *raised: object) -> None:
        self._values.__exit__(*raised)  # type: ignore[arg-type]
        if self._starts is not None:
            self._starts.__exit__(*raised)  # type: ignore[arg-type]
