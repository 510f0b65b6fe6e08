"""What reading a data file as a whole has told: small JSON values beside the stores of features, each made once."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion.checkpointing.atomic_files import replace_file
from onion.errors import DataError
from onion.tasks.data.features.cache import features_folder, not_written, used_now


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
