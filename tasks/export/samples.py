"""Rows on which an exported model is compared with its run, as ``onion predict`` reads them from standard input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onion.data.files import FORMATS, iter_lines, iter_rows
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.conll import ENDINGS
from onion.tasks.data.prepared import prepared
from onion.tasks.data.rows import AT, STANDARD_INPUT, file_rows, unknown_format
from onion.tasks.data.texts import PAIR, TEXT, TextTask
from onion.tasks.masked_lm.masking import word_ids
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.task import Task

LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
"""Tokens of the texts, and once more than the task reads."""

BEGINNINGS = "▁Ġ"
"""What tokens begin with that are beginnings of words, in vocabularies that mark these."""


def sample_lines(task: Task, tokenizer: Tokenizer) -> list[str]:
    """Return rows of random words of the vocabulary, short and long, the same each time."""
    texts = sample_texts(tokenizer, task.max_length)
    others = texts[::-1]
    return [
        json.dumps(_row(task, tokenizer, text, other), ensure_ascii=False)
        for text, other in zip(texts, others, strict=True)
    ]


def row_lines(task: Task, path: Path, columns: Mapping[str, str] | None = None) -> list[str]:
    """Return the rows of a file as lines that a task reads from standard input.

    Args:
        task: that reads them.
        path: of a table, as ``onion predict --input`` reads it, or of lines as it reads them from standard input.
        columns: of the task and of a table, where they differ. Default: they do not.

    Raises:
        DataError: the file cannot be read, has no row, or one that the task does not read; its number is named.
    """
    lines = (
        [json.dumps(row, ensure_ascii=False) for row in _rows(task, path, columns)]
        if is_table(path)
        else file_lines(path)
    )
    try:
        for _ in task.line_rows(lines):
            pass
    except DataError as error:
        raise DataError(str(error).replace(f"{STANDARD_INPUT}:", f"{path}, row ", 1)) from None
    if not lines:
        raise DataError(f"{path}: has no row")
    return lines


def _rows(task: Task, path: Path, columns: Mapping[str, str] | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, or the questions of a file of SQuAD's."""
    if isinstance(task, QuestionAnswering) and path.suffix.lower() == ".json":
        yield from ({"question": each.text, "context": each.context} for each in task.rows(path, labelled=False))
        return
    for _, row in iter_rows(prepared(path, columns, labelled=False)):
        yield {name: each for name, each in row.items() if name != AT}


def text_lines(path: Path) -> list[str]:
    """Return the texts of a file: of a table the column ``text_a``, of another one its lines.

    Raises:
        DataError: the file cannot be read, or has no text.
    """
    if is_table(path):
        return [row.text(TEXT) for row in file_rows(prepared(path, labelled=False), [TEXT])]
    return file_lines(path)


def is_table(path: Path) -> bool:
    """Tell by the ending whether a file has rows with columns, and not one in each line.

    Raises:
        DataError: it is a packed table, which is not read.
    """
    endings = (*FORMATS, ".json", ".parquet", *ENDINGS)
    if path.suffix.lower() == ".gz" and path.with_suffix("").suffix.lower() in endings:
        raise unknown_format(path)
    return path.suffix.lower() in endings


def file_lines(path: Path) -> list[str]:
    """Return the lines of a file that are not blank.

    Raises:
        DataError: it cannot be read, is not UTF-8, or has no such line.
    """
    found = [line for _, line in iter_lines(path) if line.strip()]
    if not found:
        raise DataError(f"{path}: has no row")
    return found


def sample_texts(tokenizer: Tokenizer, max_length: int) -> list[str]:
    """Return texts of random words of the vocabulary, the last one of twice ``max_length`` words."""
    words = words_of(tokenizer)
    generator = np.random.Generator(np.random.PCG64(0))  # by name, since numpy may change its default generator
    lengths = [*LENGTHS, 2 * max_length]
    return [" ".join(words[number] for number in generator.integers(0, len(words), length)) for length in lengths]


def words_of(tokenizer: Tokenizer) -> list[str]:
    """Return the words of letters among the tokens of a tokenizer."""
    known = tokenizer.tokens(word_ids(tokenizer))
    return [word for word in (_word(token or "") for token in known) if word.isalpha()]


def _word(token: str) -> str:
    """Return the word that a token is; "##ing", which is a part of one, stays as it is."""
    return token.lstrip(BEGINNINGS)


def _row(task: Task, tokenizer: Tokenizer, text: str, other: str) -> dict[str, Any]:
    if isinstance(task, QuestionAnswering):
        return {"question": text, "context": other}
    if isinstance(task, MaskedLM):
        text = f"{text} {tokenizer.tokens([tokenizer.mask_id])[0]}"
    return {TEXT: text, PAIR: other} if isinstance(task, TextTask) and task.pairs else {TEXT: text}
