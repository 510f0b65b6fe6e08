"""Raw text of training splits: files for ``onion corpus build``, a paragraph a line, a blank line between documents.

Never a dev or a test split. A row of a table is a document; each of its texts is a paragraph. A text that has come
before is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from benchmarks.pretraining.study.arms import EVERYTHING, HELD_OUT, HELD_OUT_EN, WIKIPEDIA, WIKIPEDIA_EN
from benchmarks.results.files import JOINT, table

Document = list[str]

WIKI, WIKI_VALID = "text_zh/wiki_zh.train.txt", "text_zh/wiki_zh.valid.txt"
TABLES = ("chnsenticorp", "lcqmc", "tnews", "afqmc", "ocnli", "msra_ner", "cluener", "weibo_ner")
FILES = {
    EVERYTHING: (WIKI, *(f"{name}/train.tsv" for name in TABLES), "cmrc2018/train.json"),
    WIKIPEDIA: (WIKI,),
    HELD_OUT: (WIKI_VALID,),
    WIKIPEDIA_EN: ("text_en/wiki_en.train.txt",),
    HELD_OUT_EN: ("text_en/wiki_en.valid.txt",),
}
"""Corpus -> its files, below the folder of data."""

IN_ENGLISH = (WIKIPEDIA_EN, HELD_OUT_EN)


def documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a text, a table of texts or of tagged words, or a file of questions."""
    if path.suffix == ".txt":
        yield from _of_text(path.read_text(encoding="utf-8"))
    elif path.suffix == ".json":
        yield from _of_questions(path)
    else:
        for row in table(str(path)):
            yield [_plain(row[name]) for name in ("text_a", "text_b") if name in row]


def _of_text(text: str) -> Iterator[Document]:
    for block in text.split("\n\n"):
        if lines := [line for line in block.split("\n") if line.strip()]:
            yield lines


def _of_questions(path: Path) -> Iterator[Document]:
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            yield [_plain(paragraph["context"]), *(_plain(asked["question"]) for asked in paragraph["qas"])]


def _plain(text: str) -> str:
    return " ".join(text.replace(JOINT, "").split())


def unrepeated(found: Iterable[Document]) -> Iterator[Document]:
    """Yield documents without the paragraphs that have come before; those that are left empty are left out."""
    seen: set[str] = set()
    for document in found:
        fresh = [text for text in dict.fromkeys(document) if text and text not in seen]
        seen.update(fresh)
        if fresh:
            yield fresh


def write_text(paths: Iterable[Path], to: Path, scale: float = 1.0) -> Path:
    """Write the documents of files as one; below 1, ``scale`` is the share of each file's documents, at least 40."""
    some = chain.from_iterable(_first(list(documents(path)), scale) for path in paths)
    to.write_text("\n\n".join("\n".join(document) for document in unrepeated(some)) + "\n", encoding="utf-8")
    return to


LEAST_DOCUMENTS = 40


def _first(found: list[Document], scale: float) -> Iterable[Document]:
    return found if scale >= 1 else islice(found, max(LEAST_DOCUMENTS, int(scale * len(found))))


LEAST_ROWS = 96


def head_of(path: Path, to: Path, scale: float) -> Path:
    """Write the header of a table and a share of its rows, evenly, at least 96; return where: for trials."""
    head, *lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    step = max(1, len(lines) // max(LEAST_ROWS, int(scale * len(lines))))
    to.write_text("\n".join([head, *lines[::step]]) + "\n", encoding="utf-8")
    return to
