"""The formats of the data, tables without quoting and SQuAD's JSON, and SQuAD's metric. Pure Python."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

JOINT = "\x02"


def table(path: str) -> list[dict[str, str]]:
    """Return the rows of a file by column; cells end at tabs, rows at line feeds, and nothing is quoted."""
    head, *lines = Path(path).read_bytes().decode("utf-8").rstrip("\n").split("\n")
    names = head.split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def tagged(path: str) -> list[tuple[list[str], list[str]]]:
    return [(row["text_a"].split(JOINT), row["label"].split(JOINT)) for row in table(path)]


@dataclass(frozen=True)
class Question:
    """A question, the text that answers it, and its answers: their words and where they begin."""

    id: str
    text: str
    context: str
    answers: list[tuple[str, int]]


def questions(path: str) -> Iterator[Question]:
    """Yield the questions of a file in their order."""
    for article in json.loads(Path(path).read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                answers = [(answer["text"], answer["answer_start"]) for answer in asked["answers"]]
                yield Question(str(asked["id"]), asked["question"], paragraph["context"], answers)


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_figures(true: Mapping[str, Sequence[str]], told: Mapping[str, str]) -> dict[str, float]:
    """Return the means over all questions; of several true answers the one that fits best counts."""
    exact = [max(_words(told[id_]) == _words(answer) for answer in answers) for id_, answers in true.items()]
    overlap = [max(_f1(_words(told[id_]), _words(answer)) for answer in answers) for id_, answers in true.items()]
    return {"exact_match": sum(exact) / len(exact), "f1": sum(overlap) / len(overlap)}


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _f1(told: Sequence[str], true: Sequence[str]) -> float:
    common = sum((Counter(told) & Counter(true)).values())
    return 2 * common / (len(told) + len(true)) if common else 0.0
