"""The cache of features: made once for each file (content and extension), tokenizer and task.

Features are kept in ``$ONION_HOME/features``. A store appears there under its key by a rename once complete, so an
interrupted one is never found. Deleting the folder loses nothing but time. Beside the stores are small JSON values that
take reading a whole file, such as its labels.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import attrs

from onion.checkpointing.atomic_files import replace_file, sync_folder
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

Own = TypeVar("Own", bound=Task)

FOLDER = "features"
CHUNK = 2000
"""Rows in memory while features are made."""


def cached_features(task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool = True) -> Examples:
    """Return the features of a file, memory-mapped; make them if they are not in the cache.

    Raises:
        DataError: the file is invalid or has no example, or the cache cannot be written.
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
        raise DataError(f"{folder}: the features just written cannot be read back; check the disk")
    return _of_file(found, path)


def _of_file(examples: Examples, path: str | Path) -> Examples:
    examples.fingerprint = f"sha256 {digest_of_file(path)}"
    return examples


def features_folder() -> Path:
    """Return the folder of cached features, which may not exist."""
    return home() / FOLDER


def not_written(place: object, error: OSError) -> DataError:
    """Return the error for a failed write."""
    return DataError(f"cannot write {place}: {error.strerror}; features are kept in $ONION_HOME.")


@attrs.frozen
class Stored:
    """An entry of the cache.

    Attributes:
        path: its file or folder.
        size: bytes on disk.
        used: when it was made or last used, in seconds since the epoch.
        about: ``task`` and ``file`` of features; empty for other entries.
    """

    path: Path
    size: int
    used: float
    about: Mapping[str, str]


def stored() -> list[Stored]:
    """Return all entries, most recently used first."""
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
    """Delete the entries that were not used for some days, and return their size in bytes.

    Entries that are being made stay. A training in progress keeps the features it has opened (POSIX).

    Args:
        unused_days: default 0: delete everything.

    Raises:
        DataError: an entry cannot be deleted.
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
    """Record that an entry was used, for :func:`clear`."""
    with suppress(OSError):  # of another owner, or gone
        os.utime(place)


def digest_of_features(task: Task, path: str | Path, tokenizer: Tokenizer, labelled: bool) -> str:
    """Return the key of a file's features: a digest of everything they depend on.

    Raises:
        DataError: the file cannot be read.
    """
    record = {"format": FORMAT, **file_record(path), "tokenizer": digest_of_tokenizer(tokenizer)}
    return digest_of_values({**record, **code_of(task), "labelled": labelled, **task.features_record()})


def chunks_of_features(
    task: Task, rows: Iterator[Any], tokenizer: Tokenizer, labelled: bool, notes: Counter[str], chunk: int = CHUNK
) -> Iterator[list[Example]]:
    """Yield the examples of rows, ``chunk`` rows at a time; their ``row`` counts over all chunks.

    At the end, ``notes`` get the warnings of ``onion.tasks.data.features.text_checks``.
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
    def fill(building: Path) -> None:
        notes: Counter[str] = Counter()
        rows = task.rows(path, labelled)
        about = {"task": task.name, "file": str(path)}
        any_there = write_store(building, chunks_of_features(task, rows, tokenizer, labelled, notes), notes, about)
        if digest_of_features(task, path, tokenizer, labelled) != folder.name:
            raise DataError(f"{path}: changed while it was read (it, or the code that reads it); start again")
        if not any_there:
            raise DataError(f"{path}: holds no example to learn from")

    make_entry(folder, fill, lambda: open_store(folder) is not None)


def make_entry(folder: Path, fill: Callable[[Path], None], is_there: Callable[[], bool]) -> None:
    """Make a folder of the cache, which appears when it is whole.

    Args:
        folder: in :func:`features_folder`.
        fill: writes the files into the folder that it is given.
        is_there: whether the folder is there and not damaged; asked in the end, since another process may have been
            faster.

    Raises:
        OSError: writing failed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        building = _new_part(folder.parent, held)
        fill(building)
        sync_folder(building)
        with locked(folder.parent, wait=True):
            if not is_there():
                shutil.rmtree(folder, ignore_errors=True)  # damaged
                building.rename(folder)
                sync_folder(folder.parent)


def _new_part(parent: Path, held: ExitStack) -> Path:
    """Make a locked folder to build in, which is removed when ``held`` is closed; remove those of killed processes."""
    with locked(parent, wait=True):
        for part in parent.glob(".part-*"):  # of processes that were killed; those at work hold a lock
            with suppress(BlockingIOError, FileNotFoundError), locked(part):
                shutil.rmtree(part, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=".part-", dir=parent))
        held.callback(shutil.rmtree, building, ignore_errors=True)  # not there any more if all went well
        held.enter_context(locked(building))
    return building


# -- small values -----------------------------------------------------------------------------------------------------


def fitted_task(task: Own, path: str | Path) -> Own:
    """Return ``task.fitted(path)``; the result is cached for the file, the settings and the code.

    Raises:
        DataError: there is nothing to learn from the file, or the cache cannot be written.
    """

    def key() -> str:
        others = [digest_of_file(other) for other in task.extra_fit_files(path)]
        return digest_of_values({**file_record(path), "others": others, **code_of(task), "fitted": task.record()})

    def read() -> dict[str, Any]:
        return task.fitted(path).record()

    record = kept(path, key, read)
    return type(task).from_settings({name: value for name, value in record.items() if name != "task"})


def kept(path: str | Path, key: Callable[[], str], make: Callable[[], Any]) -> Any:
    """Return a value computed from a data file; compute it if it is not in the cache.

    Args:
        path: the file, for messages.
        key: returns the cache key, a digest of everything the value depends on; called again after ``make``.
        make: computes the value, which must be JSON.

    Raises:
        DataError: the file changed while it was read, or the cache cannot be written.
    """
    name = key()
    place = features_folder() / f"{name}.json"
    found = _read(place)
    if found is not None:
        used_now(place)
    else:
        found = make()
        if key() != name:
            raise DataError(f"{path}: changed while it was read (it, or the code that reads it); start again")
        _write(place, found)
    return found


def _read(place: Path) -> Any:
    """Return the value, or None if it is missing or damaged."""
    try:
        record = json.loads(place.read_bytes())
        return record["value"] if record["sum"] == _sum(record["value"]) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(place: Path, value: Any) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, json.dumps({"value": value, "sum": _sum(value)}).encode())
    except OSError as error:
        raise not_written(place, error) from None


def _sum(value: Any) -> int:
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())
