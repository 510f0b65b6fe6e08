"""What a student learns from, as one file: labelled rows, then rows without labels, then altered copies of all.

The file is JSON lines under ``$ONION_HOME/data``; its name is the digest of what it is made of, so it is made once.
Rows that are not labelled have the task's first label, which nobody learns from (see ``known_labels.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from onion.models.words.names import UNKNOWN
from onion.models.words.splitting import splitting_of
from onion.tasks.classification import Classification
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.data.prepared import digest, json_line, written
from onion.tasks.data.rows import Row
from onion.tasks.data.texts import PAIR, TEXT
from onion.tasks.matching import QUESTION, Matching
from onion.tasks.students.augmentation import Augmentation
from onion.tasks.students.settings import AUTO

LabelledTask = Classification | Matching
"""The tasks that students learn."""

VERSION = 1
"""Of the file; to be raised where the same settings give other rows."""

NO_QUESTION = "-"
"""The question of rows without labels; metrics never see them."""


@attrs.frozen
class Lessons:
    """The rows of a training with a teacher.

    Attributes:
        task: the teacher's.
        rows: the labelled rows, then those without labels.
        labelled: how many are labelled.
        splitting: of the texts into words.
        path: the file with all rows and copies.
    """

    task: LabelledTask
    rows: Sequence[Row]
    labelled: int
    splitting: str
    path: Path

    @classmethod
    def of(
        cls,
        task: LabelledTask,
        train: Path,
        unlabelled: Path | None,
        copies: int,
        words: str,
        seed: int,
        unknown: str = UNKNOWN,
    ) -> Lessons:
        """Read the files, and write that of all rows and copies unless it is there.

        Args:
            task: of the teacher, which knows the labels.
            train: labelled rows.
            unlabelled: rows without labels. Default: none.
            copies: altered copies of each row.
            words: how texts are split into words, or ``auto``: what suits the training texts.
            seed: of the copies.
            unknown: the unknown word in copies. Default ``[UNK]``.

        Raises:
            DataError: a file is invalid, or has a label that the task does not know; file and line are named.
            OnionError: Chinese words are needed, and ``rjieba`` is not installed.
        """
        rows = list(task.rows(train, labelled=True))
        for row in rows:
            task.targets(row)  # a label that the teacher does not know is told before anything is made
        more = [] if unlabelled is None else list(task.rows(unlabelled, labelled=False))
        splitting = splitting_of(_texts(rows)) if words == AUTO else words
        files = [None if path is None else digest_of_file(path) for path in (train, unlabelled)]
        about = {"lessons": VERSION, "files": files, "task": task.record()}
        drawn = {"copies": copies, "seed": seed, "splitting": splitting} if copies else {}
        if copies and unknown != UNKNOWN:
            drawn["unknown"] = unknown
        both = [*rows, *more]
        augment = Augmentation(_texts(both), splitting, seed, unknown=unknown) if copies else None
        path = written(digest({**about, **drawn}), ".jsonl", lambda: _lines(task, both, len(rows), copies, augment))
        return cls(task, both, len(rows), splitting, path)

    def texts(self) -> Iterator[str]:
        """Yield all texts, without copies."""
        return _texts(self.rows)


def _texts(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield from texts_of(row)


def texts_of(row: Row) -> list[str]:
    """Return the text of a row, or both of a pair."""
    return [row.cells[name] for name in (TEXT, PAIR) if row.cells.get(name) is not None]


def _lines(
    task: LabelledTask, rows: Sequence[Row], labelled: int, copies: int, augment: Augmentation | None
) -> Iterator[bytes]:
    for number, row in enumerate(rows):
        yield _line(task, texts_of(row), row if number < labelled else None)
    if augment is not None:
        for copy in range(copies):
            for number, row in enumerate(rows):
                yield _line(task, augment(texts_of(row), number, copy))


def _line(task: LabelledTask, texts: Sequence[str], labelled: Row | None = None) -> bytes:
    cells = dict(zip((TEXT, PAIR), texts, strict=False))
    if labelled is None:
        return json_line({**cells, task.target: task.labels.names[0], QUESTION: NO_QUESTION})
    question = labelled.label(QUESTION) if QUESTION in labelled.cells else NO_QUESTION
    return json_line({**cells, task.target: labelled.label(task.target), QUESTION: question})
