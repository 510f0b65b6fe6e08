"""A task with what its training file tells, which is read for that once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from onion.tasks.data.features.cached_value import kept
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
