"""The formats of the data: tables without quoting, and SQuAD's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

JOINT = "\x02"


def table(path: str) -> list[dict[str, str]]:
    """Return the rows of a file by column; cells end at tabs, rows at line feeds, and nothing is quoted."""
    head, *lines = Path(path).read_bytes().decode("utf-8").rstrip("\n").split("\n")
    names = head.split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def tagged(path: str) -> list[tuple[list[str], list[str]]]:
    """Return the tokens of each row and their tags."""
    return [(row["text_a"].split(JOINT), row["label"].split(JOINT)) for row in table(path)]


@dataclass(frozen=True)
class Question:
    """A question, the text that answers it, and its answers: their words and where they begin."""

    id: str
    text: str
    context: str
    answers: list[tuple[str, int]]


def questions(path: str) -> Iterator[Question]:
    """Give the questions of a file in their order."""
    for article in json.loads(Path(path).read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                answers = [(answer["text"], answer["answer_start"]) for answer in asked["answers"]]
                yield Question(str(asked["id"]), asked["question"], paragraph["context"], answers)
