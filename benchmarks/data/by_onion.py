"""A side: the texts of a file to features, by onion."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.common.worker import Answer, serve
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features.cache import chunks_of_features

SOME = 1000


def prepare(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Read the file once.

    Args:
        job: ``file``, ``tokenizer`` (its folder), ``max_length``.
    """
    path = Path(job["file"])
    task = Classification(max_length=job["max_length"]).fitted(path)
    texts = [row.cells["text_a"] for row in task.rows(path, labelled=True)]
    parts = [texts[start : start + SOME] for start in range(0, len(texts), SOME)]

    def features(tokenizer: Tokenizer) -> list[Any]:
        """Do what making the cache does, but for writing it: read, check, tokenise, number the labels."""
        rows = task.rows(path, labelled=True)
        chunks = chunks_of_features(task, rows, tokenizer, True, Counter())
        return [example["ids"] for chunk in chunks for example in chunk]

    def tokenized(tokenizer: Tokenizer) -> list[Any]:
        return [found.ids for part in parts for found in tokenizer(part, max_length=job["max_length"])]

    def work(digest: bool = False) -> Answer:
        """Return texts a second of both ways; and a digest of all ids, if asked for."""
        told: Answer = {}
        for name, way in (("features", features), ("tokenizer", tokenized)):
            tokenizer = Tokenizer.from_pretrained(job["tokenizer"])  # a new one: it remembers no word
            begun = perf_counter()
            ids = way(tokenizer)
            told[name] = len(ids) / (perf_counter() - begun)
            if digest:
                told[f"{name} digest"] = digest_of(each.tolist() for each in ids)
        return told

    return work


def digest_of(ids: Any) -> str:
    """Return that of lists of whole numbers."""
    found = hashlib.sha256()
    for each in ids:
        found.update(f"{each}\n".encode())
    return found.hexdigest()


if __name__ == "__main__":
    serve(prepare, ("tokenizers",))
