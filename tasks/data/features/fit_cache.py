"""What a data file tells that is read as a whole: small JSON values beside the stores of features, each made once."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from onion.checkpointing.atomic_files import replace_file
from onion.errors import DataError
from onion.tasks.data.features.cache import features_folder, not_written, used_now
from onion.tasks.data.features.hashing import code_of, digest_of_file, digest_of_values, file_record
from onion.tasks.task import Task

Own = TypeVar("Own", bound=Task)


def fitted_task(task: Own, path: str | Path) -> Own:
    """Return ``task.fitted(path)``; what it found is kept for the file, the settings and the code.

    Raises:
        DataError: there is nothing to be learned from the file, or what it told cannot be kept.
    """

    def key() -> str:
        others = [digest_of_file(other) for other in task.extra_fit_files(path)]
        return digest_of_values({**file_record(path), "others": others, **code_of(task), "fitted": task.record()})

    def read() -> dict[str, Any]:
        return task.fitted(path).record()

    record = kept(path, key, read)
    return type(task).from_settings({name: value for name, value in record.items() if name != "task"})


def kept(path: str | Path, key: Callable[[], str], make: Callable[[], Any]) -> Any:
    """Return what a data file tells; it is read for it if that is not known yet.

    Args:
        path: the file, for messages.
        key: names its content and all else that decides; asked again once the value is made.
        make: reads the file; the value is one of JSON.

    Raises:
        DataError: the file changed while it was read, or the value cannot be kept.
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
    """The value, or None if it is not there as it was written."""
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
