"""Features are made once: for the content of a file, a tokenizer and a task. ``$ONION_HOME/features`` keeps them.

A store appears there under its key when it is whole (a rename), so one that a kill cut short is never found. Deleting
the folder loses nothing but time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from onion.data.files import opened
from onion.disk import locked, sync_folder
from onion.errors import DataError
from onion.models.hub import home
from onion.models.tokenizer import Tokenizer
from onion.tasks.features.examples import Example, Examples
from onion.tasks.features.store import FORMAT, open_store, write_store
from onion.tasks.task import Task

FOLDER = "features"
CHUNK = 2000
"""Rows that are in memory while features are made."""
PIECE = 1 << 20


def cached_features(task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool = True) -> Examples:
    """Return the features of a file, mapped into memory; they are made if they are not there yet.

    Raises:
        DataError: the file is not what it should be, holds no example, or the cache cannot be written.
    """
    key = digest_of_features(task, path, tokenizer, labelled)
    folder = home() / FOLDER / key
    found = open_store(folder)
    if found is not None:
        return found
    try:
        _make(folder, task, path, tokenizer, labelled)
    except OSError as error:
        place = error.filename or folder
        raise DataError(f"{place}: features cannot be written: {error.strerror}; see $ONION_HOME.") from None
    found = open_store(folder)
    if found is None:
        raise DataError(f"{folder}: what was written there changed at once; is the disk in order?")
    return found


def digest_of_features(task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool) -> str:
    """Return a name for all that decides about the features of a file: hexadecimal, 64 digits.

    Raises:
        DataError: the file cannot be read.
    """
    record = {"format": FORMAT, "file": digest_of_file(path), "tokenizer": digest_of_tokenizer(tokenizer)}
    text = json.dumps({**record, "labelled": labelled, **task.features_record()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_tokenizer(tokenizer: Tokenizer) -> str:
    """Return the SHA-256 of all that a tokenizer saves of itself."""
    found = hashlib.sha256()
    for name, content in sorted(tokenizer.files().items()):
        found.update(name.encode() + b"\0" + content)
    return found.hexdigest()


def digest_of_file(path: str | Path) -> str:
    """Return the SHA-256 of what is in a file.

    Raises:
        DataError: it cannot be read.
    """
    found = hashlib.sha256()
    with opened(Path(path)) as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return found.hexdigest()


def chunks_of_features(
    task: Task, rows: Iterator[Any], tokenizer: Tokenizer, labelled: bool, notes: Counter[str], chunk: int = CHUNK
) -> Iterator[list[Example]]:
    """Give the examples of rows, ``chunk`` rows at a time; their ``row`` counts on over the chunks."""
    first = 0
    while some := list(islice(rows, chunk)):
        examples = task.features(some, tokenizer, labelled, notes)
        for example in examples:
            example["row"] += first
        yield examples
        first += len(some)


def _make(folder: Path, task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    building = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    try:
        with locked(building):
            notes: Counter[str] = Counter()
            write_store(
                building, chunks_of_features(task, task.rows(path, labelled), tokenizer, labelled, notes), notes
            )
            made = open_store(building)
            if made is None or not made.columns:
                raise DataError(f"{path}: holds no example to learn from")
            sync_folder(building)
            if folder.exists() and open_store(folder) is None:
                shutil.rmtree(folder)  # damaged
            if not folder.exists():
                building.rename(folder)
                sync_folder(folder.parent)
    finally:
        shutil.rmtree(building, ignore_errors=True)  # not there any more if all went well


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed have left."""
    for part in folder.glob(".part-*"):
        try:
            with locked(part):
                shutil.rmtree(part, ignore_errors=True)
        except (BlockingIOError, FileNotFoundError):
            continue
