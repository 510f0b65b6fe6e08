"""Examples made on demand, for files that should not be cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, compress, repeat
from pathlib import Path
from typing import Any

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.paths import anchored
from onion.tasks.data.features.cache import chunks_of_features, digest_of_features, kept
from onion.tasks.data.features.examples import Example
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.data.texts import tell_notes
from onion.tasks.task import Task

CHUNK = 256
"""Rows in memory."""


class FeatureStream:
    """The examples of a labelled file in file order, made again in every pass.

    Their number is determined (``Task.count``) when the stream is made, unless it is cached: most tasks only check
    every row, those that split texts into windows tokenize them. So the number of steps is known in advance, and every
    row is checked before training starts.

    Args:
        task: makes the features.
        path: the file.
        tokenizer: converts texts into ids.

    Attributes:
        notes: warnings, as in ``onion.tasks.data.features.examples.Examples``; logged at the end of the first pass that
            makes all examples, which one of several processes does not.

    Raises:
        DataError: the file is invalid, or changed after the stream was made.
    """

    def __init__(self, task: Task, path: str | Path, tokenizer: Tokenizer) -> None:
        self._task, self._path, self._tokenizer = task, anchored(path), tokenizer
        self.notes: Counter[str] = Counter()
        self._stamp = _stamp(path)
        self.fingerprint = f"sha256 {digest_of_file(path)}"
        self._examples: int = kept(
            path,
            lambda: digest_of_features(task, path, tokenizer, labelled=True),
            lambda: task.count(task.rows(path, labelled=True), tokenizer),
        )
        self._told = False
        if not self._examples:
            raise DataError(f"{path}: holds no example to learn from")

    def __len__(self) -> int:
        return self._examples

    def __iter__(self) -> Iterator[Example]:
        self._refuse_change()
        place, notes = 0, Counter[str]()
        for example in self._made(self._task.rows(self._path, labelled=True), notes):
            yield {"place": place, **example}
            place += 1
        if place != self._examples:
            raise self._changed()
        self._tell(notes)

    def skipping(self, skipped: Sequence[int]) -> Iterator[Example | None]:
        """Give the examples of a pass with None in the place of those that are skipped; they are not tokenized.

        A task that makes more or fewer than one example of a row makes them all, since only that tells their places.
        """
        if not self._task.makes_one_each:
            yield from self
            return
        self._refuse_change()
        wanted = chain((not skip for skip in skipped), repeat(True))
        examples = self._made(compress(self._task.rows(self._path, labelled=True), wanted), Counter())
        for place, skip in enumerate(skipped):
            example = None if skip else next(examples, None)
            if not skip and example is None:
                raise self._changed()
            yield None if example is None else {"place": place, **example, "row": place}
        if next(examples, None) is not None:
            raise self._changed()

    def _refuse_change(self) -> None:
        if _stamp(self._path) != self._stamp:
            raise self._changed()

    def _tell(self, notes: Counter[str]) -> None:
        if not self._told:
            self._told, self.notes = True, notes
            tell_notes(str(self._path), notes)

    def _changed(self) -> DataError:
        return DataError(f"{self._path}: changed since the training began; the passes would differ")

    def _made(self, rows: Iterator[Any], notes: Counter[str]) -> Iterator[Example]:
        chunks = chunks_of_features(self._task, rows, self._tokenizer, True, notes, CHUNK)
        return chain.from_iterable(chunks)


def _stamp(path: str | Path) -> tuple[int, int] | None:
    """Return size and modification time of a file."""
    try:
        found = Path(path).stat()
    except OSError:  # reported where the file is read
        return None
    return found.st_size, found.st_mtime_ns
