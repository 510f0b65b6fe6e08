"""Raw text for a corpus: documents of paragraphs, in plain text or JSON lines, packed by gzip or not.

Plain text (``.txt``, ``.txt.gz``): a paragraph a line, blank lines between documents, as BERT's
``create_pretraining_data.py`` and CLUECorpus2020 have it.

JSON lines (``.jsonl``, ``.jsonl.gz``): a document a line, an object with its text in ``text``, whose line breaks part
paragraphs (wikiextractor's ``--json``, Wikipedia on Hugging Face's hub, C4, CLUECorpusSmall's wiki2019zh), or in
``paragraphs``, a list of texts; a ``title`` becomes the first paragraph, unless the text begins with it. Other fields
are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import attrs

from onion.data.files import JSON_LINES, iter_lines, json_objects
from onion.data.table import at
from onion.errors import DataError
from onion.messages import listed

PLAIN_TEXT = ".txt"
PACKED = ".gz"
FORMATS = (PLAIN_TEXT, JSON_LINES, PLAIN_TEXT + PACKED, JSON_LINES + PACKED)
"""The endings that are known."""

MAX_CHARACTERS = 1 << 26
"""Characters of a document of plain text; a longer one has lost its blank lines, and would fill the memory."""

BREAK = re.compile(r"\r\n?|\n")


@attrs.frozen
class RawDocument:
    """A document.

    Attributes:
        path: of its file.
        line: in which it begins, from 1.
        paragraphs: at least one, without white space around them; none is empty.
    """

    path: Path
    line: int
    paragraphs: tuple[str, ...]


def read_documents(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of a file in their order, one in memory at a time; those without text are left out.

    Raises:
        DataError: the ending is none of :data:`FORMATS`, the file cannot be read, is damaged, not UTF-8 or without any
            text, or a line is not what the ending says; file and line are named.
    """
    found = False
    for document in _reader(path)(path):
        found = True
        yield document
    if not found:
        raise DataError(f"{path}: there is no text in the file; it needs at least one line that is not blank")


def _reader(path: Path) -> Callable[[Path], Iterator[RawDocument]]:
    name = path.name.lower().removesuffix(PACKED)
    if name.endswith(PLAIN_TEXT):
        return _plain_documents
    if name.endswith(JSON_LINES):
        return _json_documents
    raise DataError(f"{path}: cannot tell the format by the ending; name the file {', '.join(FORMATS)}")


def _plain_documents(path: Path) -> Iterator[RawDocument]:
    paragraphs: list[str] = []
    first = size = 0
    for number, line in chain(iter_lines(path), [(0, "")]):  # the end of the file ends a document, as a blank line does
        text = line.strip()
        if text:
            first = first if paragraphs else number
            paragraphs.append(text)
            size += len(text)
            if size > MAX_CHARACTERS:
                told = f"this document has more than {MAX_CHARACTERS >> 20} Mi characters"
                raise at(path, first, f"{told}; put a blank line between documents")
        elif paragraphs:
            yield RawDocument(path, first, tuple(paragraphs))
            paragraphs, size = [], 0


def _json_documents(path: Path) -> Iterator[RawDocument]:
    for number, record in json_objects(path, (line for _, line in iter_lines(path)), ()):
        title, *body = _texts(path, number, record)
        stripped = [text.strip() for text in body]
        paragraphs = [text for text in stripped if text]
        if title.strip() and paragraphs[:1] != [title.strip()]:
            paragraphs.insert(0, title.strip())
        if paragraphs:
            yield RawDocument(path, number, tuple(paragraphs))


def _texts(path: Path, number: int, record: dict[str, Any]) -> list[str]:
    """Return title, which may be empty, and paragraphs of a document, as they stand in the file."""
    if ("text" in record) == ("paragraphs" in record):
        told = "either 'text' or 'paragraphs', and perhaps 'title', are expected in this object"
        raise at(path, number, f"{told}; it has {listed(record)}")
    title = record.get("title", "")
    body = BREAK.split(record["text"]) if isinstance(record.get("text"), str) else record.get("paragraphs")
    if not isinstance(body, list) or not all(isinstance(each, str) for each in (title, *body)):
        raise at(
            path, number, "'title' and 'text' must be strings, 'paragraphs' a list of strings; correct this object"
        )
    try:
        "".join((title, *body)).encode()
    except UnicodeEncodeError:
        raise at(path, number, "the text has an unpaired surrogate (\\ud800 to \\udfff); correct it") from None
    return [title, *body]
