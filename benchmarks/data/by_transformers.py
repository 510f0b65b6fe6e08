"""A side: the texts of a file to ids, by transformers' fast tokenizer with its own batching."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from transformers import AutoTokenizer

from benchmarks.common.worker import Answer, serve
from benchmarks.results.hugging_face.files import table

SOME = 1000


def prepare(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Read the file once; the job is that of ``by_onion``."""
    tokenizer = AutoTokenizer.from_pretrained(job["tokenizer"])
    if not tokenizer.is_fast:
        raise SystemExit("transformers gave its slow tokenizer")

    def tokenized(texts: list[str]) -> list[list[int]]:
        parts = (texts[start : start + SOME] for start in range(0, len(texts), SOME))
        return [
            ids for part in parts for ids in tokenizer(part, truncation=True, max_length=job["max_length"])["input_ids"]
        ]

    texts = [row["text_a"] for row in table(job["file"])]
    ways = {
        "features": lambda: tokenized([row["text_a"] for row in table(job["file"])]),
        "tokenizer": lambda: tokenized(texts),
    }

    def work(digest: bool = False) -> Answer:
        """Return texts a second with and without reading the file; and a digest of all ids, if asked for."""
        told: Answer = {}
        for name, way in ways.items():
            begun = perf_counter()
            ids = way()
            told[name] = len(ids) / (perf_counter() - begun)
            if digest:
                found = hashlib.sha256()
                for each in ids:
                    found.update(f"{each}\n".encode())
                told[f"{name} digest"] = found.hexdigest()
        return told

    return work


if __name__ == "__main__":
    serve(prepare, ("tokenizers", "transformers"))
