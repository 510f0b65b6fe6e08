"""Files in the format of the CoNLL shared tasks: a token and its tag a line, sentences apart by blank lines.

The first column is the token and the last one the tag, with tabs or spaces between them, so the four columns of
CoNLL-2003 are read as well as the two of MSRA or Weibo; ``-DOCSTART-`` is left out. Tags are written as IOB2, whatever
they were:

    IOB1    I-PER I-PER B-PER       B- only between two neighbours of a kind
    IOB2    B-PER I-PER B-PER
    BIOES   B-PER E-PER S-PER       also BILOU: B-PER L-PER U-PER
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from onion.data.files import iter_lines
from onion.data.table import at
from onion.messages import shown

ENDINGS = (".conll", ".bio", ".iob", ".iob2")
DOCUMENT = "-DOCSTART-"
BEGINS, CONTINUES = "BSU", "IEL"
"""First letters of tags, of all schemes, that begin a chunk and that continue one."""


def conll_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the sentences of a file: the line in which each begins, and ``text_a`` and ``label``, lists of strings.

    A file of tokens without tags, to predict them, has one column; its rows have no ``label``.

    Raises:
        DataError: a line lacks its tag, or has one that is of no scheme; file and line are named.
    """
    tagged: bool | None = None
    for sentence in _sentences(path):
        if tagged is None:
            _refuse_numbers(path, sentence)
        tokens, tags = [], []
        for number, cells in sentence:
            tagged = len(cells) > 1 if tagged is None else tagged
            if (len(cells) > 1) != tagged:
                wrong = "has no tag" if tagged else "has a tag, unlike those before"
                raise at(path, number, f"{shown(cells[0])} {wrong}; a line has a token and its tag, or is blank")
            tokens.append(cells[0])
            tags.append(_tag(path, number, cells[-1]) if tagged else "O")
        yield sentence[0][0], {"text_a": tokens, **({"label": to_iob2(tags)} if tagged else {})}


def _refuse_numbers(path: Path, sentence: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Refuse a first column that numbers the tokens of a sentence, as those of CoNLL-X and CoNLL-U do."""
    if len(sentence) > 1 and all(
        len(cells) > 2 and cells[0] == str(place) for place, (_, cells) in enumerate(sentence, 1)
    ):
        wrong = "the first column numbers the tokens; leave it out"
        raise at(path, sentence[0][0], f"{wrong}: the first has to be the token, and the last one its tag")


def _sentences(path: Path) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield the sentences: line and columns of each token."""
    sentence: list[tuple[int, list[str]]] = []
    for number, line in iter_lines(path):
        cells = line.split("\t") if "\t" in line else line.split()
        if line.strip() and cells[0] != DOCUMENT:
            sentence.append((number, cells))
        elif sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _tag(path: Path, number: int, tag: str) -> str:
    prefix, dash, kind = tag.partition("-")
    if tag != "O" and not (dash and kind and prefix in (*BEGINS, *CONTINUES)):
        raise at(path, number, f"{shown(tag)} is no tag; tags are O, B-KIND and I-KIND, or those of BIOES")
    return tag


def to_iob2(tags: Sequence[str]) -> list[str]:
    """Return tags of IOB1, IOB2, BIOES or BILOU as IOB2: every chunk begins with ``B-``."""
    found: list[str] = []
    before = None
    for tag in tags:
        prefix, _, kind = tag.partition("-")
        if tag == "O":
            found.append(tag)
            before = None
        else:
            found.append(f"{'B' if prefix in BEGINS or kind != before else 'I'}-{kind}")
            before = kind
    return found
