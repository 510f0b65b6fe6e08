"""Features are made once: for the content of a file, a tokenizer and a task. ``$ONION_HOME/features`` keeps them.

A store appears there under its key when it is whole (a rename), so one that a kill cut short is never found. Deleting
the folder loses nothing but time.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from onion.data.files import opened
from onion.disk import locked, sync_folder
from onion.errors import DataError
from onion.models import splitting
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
        raise DataError(f"cannot write {place}: {error.strerror}; features are kept in $ONION_HOME.") from None
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
    code = {"class": f"{type(task).__module__}.{type(task).__qualname__}", "code": digest_of_code(type(task))}
    text = json.dumps({**record, **code, "labelled": labelled, **task.features_record()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_code(kind: type[Task]) -> str:
    """Return the SHA-256 of the files that a task's features are made by: its classes', and all of onion's tasks."""
    files = {inspect.getsourcefile(each) for each in kind.__mro__ if each.__module__ != "builtins"}
    folders = (Path(__file__).parents[1], Path(splitting.__file__).parent)
    files |= {str(path) for folder in folders for path in folder.rglob("*.py")}
    found = hashlib.sha256()
    for name in sorted(filter(None, files)):
        found.update(Path(name).read_bytes())
    return found.hexdigest()


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
    with ExitStack() as held:
        building = _new_part(folder.parent, held)
        notes: Counter[str] = Counter()
        rows = task.rows(path, labelled)
        write_store(building, chunks_of_features(task, rows, tokenizer, labelled, notes), notes)
        if digest_of_features(task, path, tokenizer, labelled) != folder.name:
            raise DataError(f"{path}: changed while it was read; start again")
        if open_store(building) is None:
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
