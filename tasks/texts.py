"""Texts and pairs of texts: from a file to examples, from examples to a batch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import attrs
import numpy as np

from onion.data.batching import pad
from onion.data.files import Table, read_rows
from onion.data.table import at
from onion.errors import DataError
from onion.models.tokenizer import Encoding, Tokenizer
from onion.tasks.labels import Labels

log = logging.getLogger("onion")


@attrs.frozen
class TextExample:
    """One text, or pair of texts, as a network takes it.

    Attributes:
        row: its place in the file, from 0.
        ids: token ids, int64 ``[length]``, with the special tokens.
        types: 0 for the first text, 1 for the second; int64 ``[length]``.
        label: its label's number; None where there is no label.
    """

    row: int
    ids: np.ndarray
    types: np.ndarray
    label: int | None


class TextExamples(Sequence[TextExample]):
    """The examples of one file, tokenised once.

    Args:
        encodings: the tokenised texts.
        labels: their labels' numbers, if they have labels.
        pairs: whether they are pairs of texts.

    Attributes:
        cut: how many texts were longer than allowed and were cut.
    """

    def __init__(self, encodings: Sequence[Encoding], labels: Sequence[int] | None = None, pairs: bool = False) -> None:
        self._encodings = encodings
        self._labels = labels
        self.pairs = pairs
        self.cut = sum(encoding.truncated for encoding in encodings)

    def __len__(self) -> int:
        return len(self._encodings)

    @overload
    def __getitem__(self, index: int) -> TextExample: ...
    @overload
    def __getitem__(self, index: slice) -> list[TextExample]: ...
    def __getitem__(self, index: int | slice) -> TextExample | list[TextExample]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        encoding = self._encodings[index]
        label = None if self._labels is None else self._labels[index]
        return TextExample(index, encoding.ids, encoding.types, label)

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each example."""
        return [len(encoding.ids) for encoding in self._encodings]

    @property
    def majority(self) -> float:
        """The share of the commonest label; what always answering it would score."""
        return Counter(self._labels or ()).most_common(1)[0][1] / len(self)


def read_table(path: str | Path, labelled: bool) -> Table:
    """Read the columns ``text_a``, ``text_b`` if there is one, and ``label``.

    Raises:
        DataError: see ``onion.data.files``; also where a text or a label is no string, or half a character.
    """
    needed = ["text_a", "label"] if labelled else ["text_a"]
    table = read_rows(path, columns=needed, optional=["text_b"])
    for place, row in enumerate(table):
        for column, value in row.items():
            if column != "label" or not isinstance(value, (int, float)):
                check_text(table.path, table.line(place), column, value)
    return table


def check_text(path: Path, line: int, column: str, value: object) -> None:
    """Refuse what cannot be tokenised: no string, or one that JSON's escapes wrote and that cannot be encoded.

    Raises:
        DataError: the message names file, line and column.
    """
    if not isinstance(value, str):
        raise at(path, line, f"{column} is {value!r}, not a text; put it in quotes")
    if not value.isascii() and value.encode(errors="ignore").decode() != value:
        raise at(path, line, f"{column} holds half of a surrogate pair (\\ud800 to \\udfff); mend the text")


def label_names(table: Table) -> list[str]:
    """Return the label of each row, as text."""
    return [str(row["label"]) for row in table]


def encode(
    table: Table, tokenizer: Tokenizer, max_length: int, labels: Labels | None = None, pairs: bool | None = None
) -> TextExamples:
    """Tokenise the rows of a table.

    Args:
        table: rows with ``text_a``, and ``text_b`` in all of them or in none.
        tokenizer: turns texts into ids.
        max_length: tokens an example may have, special ones included; what is longer is cut, the longer text first.
        labels: the known labels; None: the rows are not labelled.
        pairs: whether the rows have to be pairs, or must not be; None: as they are.

    Raises:
        DataError: an unknown label, or ``text_b`` in some rows only (the message names file and line); or pairs where
            single texts were expected, or the other way round.
    """
    seconds = _second_texts(table)
    if pairs is not None and pairs != (seconds is not None):
        there, before = ("is no", "a") if pairs else ("is a", "no")
        raise DataError(f"{table.path}: there {there} column 'text_b'; the training file has {before} column 'text_b'.")
    numbers = None if labels is None else _label_numbers(table, labels)
    encodings = tokenizer([row["text_a"] for row in table], seconds, max_length=max_length)
    return TextExamples(encodings, numbers, pairs=seconds is not None)


def _second_texts(table: Table) -> list[str] | None:
    """Return the second texts, or None if the rows have none."""
    texts = [row.get("text_b") for row in table]
    if all(text is None for text in texts):
        return None
    for place, text in enumerate(texts):
        if text is None:
            raise table.error(place, "text_b is missing here but not in other rows; give it in all rows or in none")
    return texts  # type: ignore[return-value]


def _label_numbers(table: Table, labels: Labels) -> list[int]:
    numbers = labels.numbers()
    found = []
    for place, name in enumerate(label_names(table)):
        if name not in numbers:
            known = ", ".join(map(repr, labels.names[:10])) + (", ..." if len(labels) > 10 else "")
            raise table.error(place, f"the label {name!r} does not occur in the training file, which has {known}")
        found.append(numbers[name])
    return found


def batch_of(examples: Sequence[TextExample], pad_id: int = 0) -> dict[str, Any]:
    """Make a batch of examples, padded on the right to the longest.

    ``lengths`` and ``rows`` are lists, so they stay on the host: the encoder works out there where the tokens stand,
    and a GPU need not be waited for.

    Returns:
        ``input_ids``, ``token_type_ids``: int64 ``[batch, length]``; ``lengths``, ``rows``: lists of ``batch``
        integers; and, if the examples have labels, ``labels``: int64 ``[batch]``.
    """
    ids = [example.ids for example in examples]
    batch = {
        "input_ids": pad(ids, pad_id),
        "token_type_ids": pad([example.types for example in examples], 0),
        "lengths": [len(each) for each in ids],
        "rows": [example.row for example in examples],
    }
    if examples[0].label is not None:
        batch["labels"] = np.array([example.label for example in examples])
    return batch


def arguments(batch: dict[str, Any]) -> dict[str, Any]:
    """Return what an encoder takes of a batch: ids, types, and the mask (bool ``[batch, length]``) as a numpy array."""
    lengths = np.array(batch["lengths"])
    return {
        "input_ids": batch["input_ids"],
        "token_type_ids": batch["token_type_ids"],
        "attention_mask": np.arange(batch["input_ids"].shape[1]) < lengths[:, None],
    }


def tell_cut(path: str, examples: TextExamples, max_length: int) -> None:
    """Say once how many texts of a file were cut."""
    if examples.cut:
        log.warning("%s: %d of %d texts are longer than %d tokens; cut", path, examples.cut, len(examples), max_length)


def check_max_length(max_length: int, positions: int) -> None:
    """Refuse a length that the encoder has no positions for.

    Raises:
        DataError: the message names both.
    """
    if not 3 <= max_length <= positions:
        raise DataError(f"--max-length {max_length}: the encoder takes 3 to {positions} tokens; choose one in between.")
