"""Features are made once: for a file (its content and its ending), a tokenizer and a task.

``$ONION_HOME/features`` keeps them. A store appears there under its key when it is whole (a rename), so one that a
kill cut short is never found. Deleting the folder loses nothing but time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import sync_folder
from onion.checkpointing.lock import locked
from onion.errors import DataError
from onion.models.hub import home
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.examples import Example, Examples
from onion.tasks.data.features.hashing import (
    code_of,
    digest_of_file,
    digest_of_tokenizer,
    digest_of_values,
    file_record,
)
from onion.tasks.data.features.store import FORMAT, about_store, open_store, write_store
from onion.tasks.data.features.text_checks import Tally
from onion.tasks.task import Task

FOLDER = "features"
CHUNK = 2000
"""Rows that are in memory while features are made."""


def cached_features(task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool = True) -> Examples:
    """Return the features of a file, mapped into memory; they are made if they are not there yet.

    Raises:
        DataError: the file is not what it should be, holds no example, or the cache cannot be written.
    """
    key = digest_of_features(task, path, tokenizer, labelled)
    folder = features_folder() / key
    found = open_store(folder)
    if found is not None:
        used_now(folder)
        return _of_file(found, path)
    try:
        _make(folder, task, path, tokenizer, labelled)
    except OSError as error:
        raise not_written(error.filename or folder, error) from None
    found = open_store(folder)
    if found is None:
        raise DataError(f"{folder}: what was written there changed at once; is the disk in order?")
    return _of_file(found, path)


def _of_file(examples: Examples, path: str | Path) -> Examples:
    examples.fingerprint = f"sha256 {digest_of_file(path)}"
    return examples


def features_folder() -> Path:
    """Return where features are kept; it may be missing."""
    return home() / FOLDER


def not_written(place: object, error: OSError) -> DataError:
    """Return the error to raise where the disk refuses."""
    return DataError(f"cannot write {place}: {error.strerror}; features are kept in $ONION_HOME.")


@attrs.frozen
class Stored:
    """Something that is kept in the folder of features.

    Attributes:
        path: where.
        size: bytes on the disk.
        used: when it was made or last used, in seconds since the epoch.
        about: of features the ``task`` and the ``file``; else nothing.
    """

    path: Path
    size: int
    used: float
    about: Mapping[str, str]


def stored() -> list[Stored]:
    """Return all that is kept, what was used last first."""
    folder = features_folder()
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    found = []
    for path in paths:
        with suppress(FileNotFoundError):  # another process is clearing, or has finished a store
            files = [path, *path.iterdir()] if path.is_dir() else [path]
            size = sum(each.stat().st_size for each in files if not each.is_dir())
            found.append(Stored(path, size, path.stat().st_mtime, about_store(path)))
    return sorted(found, key=lambda each: -each.used)


def clear(unused_days: float = 0.0) -> int:
    """Delete what was not used for some days; return how many bytes that were. What is being made stays.

    A training under way keeps the features that it has opened (POSIX).

    Args:
        unused_days: default 0: everything.

    Raises:
        DataError: the disk refused.
    """
    freed = 0
    for each in stored():
        if unused_days and each.used > time.time() - unused_days * 86400:
            continue
        try:
            _delete(each.path)
            freed += each.size
        except BlockingIOError:  # it is being made
            continue
        except OSError as error:
            raise DataError(f"cannot delete {each.path}: {error.strerror}.") from None
    return freed


def _delete(path: Path) -> None:
    if path.is_dir():
        with locked(path):
            shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def used_now(place: Path) -> None:
    """Note that something was used, for :func:`clear`."""
    with suppress(OSError):  # of another owner, or gone
        os.utime(place)


def digest_of_features(task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool) -> str:
    """Return a name for all that decides about the features of a file.

    Raises:
        DataError: the file cannot be read.
    """
    record = {"format": FORMAT, **file_record(path), "tokenizer": digest_of_tokenizer(tokenizer)}
    return digest_of_values({**record, **code_of(task), "labelled": labelled, **task.features_record()})


def chunks_of_features(
    task: Task, rows: Iterator[Any], tokenizer: Tokenizer, labelled: bool, notes: Counter[str], chunk: int = CHUNK
) -> Iterator[list[Example]]:
    """Give the examples of rows, ``chunk`` rows at a time; their ``row`` counts on over the chunks.

    At the end ``notes`` are told what is so of most of them (``onion.tasks.data.features.text_checks``).
    """
    tally = Tally(tokenizer)
    first = 0
    while some := list(islice(rows, chunk)):
        examples = task.features(some, tokenizer, labelled, notes)
        tally.add(examples, task.unlearned(examples) if labelled else 0)
        for example in examples:
            example["row"] += first
        yield examples
        first += len(some)
    tally.note(notes)


def _make(folder: Path, task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        building = _new_part(folder.parent, held)
        notes: Counter[str] = Counter()
        rows = task.rows(path, labelled)
        about = {"task": task.name, "file": str(path)}
        any_there = write_store(building, chunks_of_features(task, rows, tokenizer, labelled, notes), notes, about)
        if digest_of_features(task, path, tokenizer, labelled) != folder.name:
            raise DataError(f"{path}: changed while it was read (it, or the code that reads it); start again")
        if not any_there:
            raise DataError(f"{path}: holds no example to learn from")
        sync_folder(building)
        with locked(folder.parent, wait=True):
            if open_store(folder) is None:  # else another process was faster
                shutil.rmtree(folder, ignore_errors=True)  # damaged
                building.rename(folder)
                sync_folder(folder.parent)


def _new_part(parent: Path, held: ExitStack) -> Path:
    """Make a folder to build in, which is locked, and removed when ``held`` is closed; and sweep up old ones."""
    with locked(parent, wait=True):
        for part in parent.glob(".part-*"):  # of processes that were killed; those at work hold a lock
            with suppress(BlockingIOError, FileNotFoundError), locked(part):
                shutil.rmtree(part, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=".part-", dir=parent))
        held.callback(shutil.rmtree, building, ignore_errors=True)  # not there any more if all went well
        held.enter_context(locked(building))
    return building
