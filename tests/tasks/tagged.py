"""Small files for the tests of tagging."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.examples import Examples
from onion.tasks.token_classification.tagged_text import TaggedText
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks.helpers import BAD, GOOD, PLAIN

LABELS = ["O", "B-bad", "B-good", "I-bad", "I-good"]


def joined(words: Sequence[str], tags: Sequence[str]) -> tuple[str, str]:
    """A row of a file."""
    return "\x02".join(words), "\x02".join(tags)


def tagged(count: int, seed: int, longest: int = 12) -> list[tuple[str, str]]:
    """Rows in which some words begin a chunk of two, and others end it."""
    chance, rows = random.Random(seed), []
    for _ in range(count):
        words: list[str] = []
        tags: list[str] = []
        length = chance.randrange(2, longest)
        while len(words) < length:
            kind, some = chance.choice([("good", GOOD), ("bad", BAD), ("", PLAIN), ("", PLAIN)])
            if kind:
                words += [chance.choice(some[:3]), chance.choice(some[3:]), chance.choice(PLAIN)]
                tags += [f"B-{kind}", f"I-{kind}", "O"]
            else:
                words.append(chance.choice(some))
                tags.append("O")
        rows.append(joined(words, tags))
    return rows


def examples_of(
    task: TokenClassification, tokenizer: Tokenizer, path: Path, labelled: bool = True
) -> tuple[list[TaggedText], Examples]:
    """The rows of a file, and what the task makes of them."""
    rows = list(task.rows(path, labelled))
    return rows, Examples.of(task.features(rows, tokenizer, labelled, Counter()))
