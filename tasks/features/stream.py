"""Examples that are made when they are asked for: for files that should not be cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.features.cache import chunks_of_features
from onion.tasks.features.examples import Example
from onion.tasks.task import Task

CHUNK = 256
"""Rows in memory."""


class FeatureStream:
    """The examples of a labelled file in its order, read anew in every pass.

    Args:
        task: makes the features.
        path: the file; read once when this is made, to check every row and to count the examples.
        tokenizer: turns texts into ids.

    Attributes:
        notes: what the user should know, as ``onion.tasks.features.examples.Examples`` has it.

    Raises:
        DataError: the file is not what it should be; or, in a later pass, not what it was.
    """

    def __init__(self, task: Task, path: str | Path, tokenizer: Tokenizer) -> None:
        self._task, self._path, self._tokenizer = task, path, tokenizer
        self.notes: Counter[str] = Counter()
        self._stamp = _stamp(path)
        self._examples = sum(len(chunk) for chunk in self._chunks(self.notes))

    def __len__(self) -> int:
        return self._examples

    def __iter__(self) -> Iterator[Example]:
        if _stamp(self._path) != self._stamp:
            raise self._changed()
        place = 0
        for chunk in self._chunks(Counter()):
            for example in chunk:
                yield {"place": place, **example}
                place += 1
        if place != self._examples:
            raise self._changed()

    def _changed(self) -> DataError:
        return DataError(f"{self._path}: changed since the training began; its passes would not be alike")

    def _chunks(self, notes: Counter[str]) -> Iterator[list[Example]]:
        rows = self._task.rows(self._path, labelled=True)
        return chunks_of_features(self._task, rows, self._tokenizer, True, notes, CHUNK)


def _stamp(path: str | Path) -> tuple[int, int] | None:
    """Size and time of the last change of a file."""
    try:
        found = Path(path).stat()
    except OSError:  # what is wrong is said where the file is read
        return None
    return found.st_size, found.st_mtime_ns
