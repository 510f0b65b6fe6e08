"""What tasks over a text or a pair of texts share: rows and token ids."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import attrs
from attrs.validators import optional

from onion.errors import DataError
from onion.models.tokenizer import Encoding, Tokenizer
from onion.tasks.batches import batch_of
from onion.tasks.data.features.examples import Example
from onion.tasks.data.rows import Row, file_rows, line_rows
from onion.tasks.task import Task
from onion.tasks.validators import SWITCH

log = logging.getLogger("onion")

TEXT = "text_a"
"""The column of the text."""

PAIR = "text_b"
"""The column of the second text of a pair."""

CUT = ", cut"
"""The end of notes about texts that lose their end."""

Own = TypeVar("Own", bound="TextTask")


@attrs.frozen(kw_only=True)
class TextTask(Task):
    """A task over rows with ``text_a``, and ``text_b`` in all of them or in none.

    Attributes:
        pairs: whether the rows are pairs; None if not known yet.
        target: the column with the labels.
    """

    target: ClassVar[str] = "label"

    pairs: bool | None = attrs.field(default=None, validator=optional(SWITCH))

    def rows(self, path: str | Path, labelled: bool) -> Iterator[Row]:
        """Yield the rows of a file; see ``Task.rows``."""
        needed = [TEXT, self.target] if labelled else [TEXT]
        return checked_texts(file_rows(path, needed, [PAIR]), self.pairs)

    def line_rows(self, lines: Iterable[str]) -> Iterator[Row]:
        """Yield a row for each line: ``text_a``, or ``text_a<TAB>text_b``, or a JSON object."""
        return checked_texts(line_rows(lines, [TEXT, PAIR] if self.pairs else [TEXT]), self.pairs)

    def text_rows(self, texts: Sequence[str]) -> Iterator[Row]:
        """Yield a row for each text; see ``Task.text_rows``."""
        if self.pairs:
            raise DataError("--text: this model was trained on pairs of texts; use --input with text_a and text_b.")
        return (Row(Path("--text"), number, {TEXT: text}) for number, text in enumerate(texts, start=1))

    def fitted(self: Own, path: str | Path) -> Own:
        """Return the task with ``pairs``."""
        return attrs.evolve(self, pairs=next(self.rows(path, labelled=True)).cells.get(PAIR) is not None)

    def features(self, rows: Sequence[Row], tokenizer: Tokenizer, labelled: bool, notes: Counter[str]) -> list[Example]:
        """Return ``ids``, ``types`` (int64 ``[length]``) and the :meth:`targets` of each row; see ``Task.features``."""
        examples = examples_of(self.encodings(rows, tokenizer, notes))
        if labelled:
            for row, example in zip(rows, examples, strict=True):
                example |= self.targets(row)
        return examples

    def count(self, rows: Iterable[Row], tokenizer: Tokenizer) -> int:
        """Count the rows, each of which is one example, and check their targets; see ``Task.count``."""
        return sum(1 for _ in map(self.targets, rows))

    @property
    def makes_one_each(self) -> bool:
        """Whether each row is one example, as long as :meth:`count` counts rows; see ``Task.makes_one_each``."""
        return type(self).count is TextTask.count

    def encodings(self, rows: Sequence[Row], tokenizer: Tokenizer, notes: Counter[str]) -> list[Encoding]:
        """Tokenize rows; of pairs that are too long, the longer text is truncated first."""
        seconds = [row.cells[PAIR] for row in rows] if self.pairs else None
        encodings = tokenizer([row.cells[TEXT] for row in rows], seconds, max_length=self.max_length)
        note_cut(notes, encodings, self.max_length)
        return encodings

    @abstractmethod
    def targets(self, row: Row) -> dict[str, Any]:
        """Return the targets of a labelled row, as numbers and arrays."""

    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch of examples; see :func:`batch_of`."""
        return batch_of(examples, pad_id)


def checked_texts(rows: Iterable[Row], pairs: bool | None = None) -> Iterator[Row]:
    """Check that texts are strings, and that all rows or none have a second one; yield the rows.

    Args:
        rows: with ``text_a``.
        pairs: whether there must be second texts. Default: as in the first row.

    Raises:
        DataError: a cell is not a string, or a row differs from the others; file and line are named.
    """
    known = pairs is not None
    for row in rows:
        here = row.cells.get(PAIR) is not None
        pairs = here if pairs is None else pairs
        if here != pairs:
            raise _unlike(row, here, known)
        for column in (TEXT, PAIR)[: 1 + here]:
            row.text(column)
        yield row


def _unlike(row: Row, here: bool, known: bool) -> DataError:
    if known:
        there, before = ("is a", "no") if here else ("is no", "a")
        return row.error(f"there {there} column {PAIR!r}; the training file has {before} column {PAIR!r}")
    wrong = "is here but not in the first row" if here else "is missing here but not in the first row"
    return row.error(f"{PAIR} {wrong}; give it in all rows or in none")


def examples_of(encodings: Iterable[Encoding]) -> list[Example]:
    """Return ``row``, ``ids`` and ``types`` of each."""
    return [{"row": row, "ids": found.ids, "types": found.types} for row, found in enumerate(encodings)]


def note_cut(notes: Counter[str], encodings: Iterable[Encoding], max_length: int) -> None:
    """Count the texts that were truncated."""
    cut = sum(encoding.truncated for encoding in encodings)
    if cut:
        notes[f"texts longer than {max_length} tokens{CUT}"] += cut


def tell_notes(path: str, notes: Mapping[str, int]) -> None:
    """Log the warnings about a file."""
    for what, count in notes.items():
        log.warning("%s: %s: %d", path, what, count)


def check_max_length(max_length: int, positions: int, name: str = "--max-length") -> None:
    """Refuse a length that the encoder does not support.

    Args:
        max_length: the maximum number of tokens of a text.
        positions: of the encoder.
        name: of the length, for the message.

    Raises:
        DataError: the message has both numbers.
    """
    if not 3 <= max_length <= positions:
        raise DataError(f"{name} {max_length}: the encoder takes 3 to {positions} tokens; choose one in between.")
