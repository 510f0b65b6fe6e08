"""Sides: texts to ids by transformers' fast tokenizer with its own batching, and the fine-tuning by its Trainer."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import torch
import transformers

from benchmarks.results.files import table
from benchmarks.results.hugging_face import classification, trainer_of

LIBRARIES = ("tokenizers", "torch", "transformers")
SOME = 1000

Answer = dict[str, Any]


def texts(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Read the file once; the job is that of onion's side."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["tokenizer"])
    if not tokenizer.is_fast:
        raise SystemExit("transformers gave its slow tokenizer")

    def tokenized(texts: list[str]) -> list[list[int]]:
        parts = (texts[start : start + SOME] for start in range(0, len(texts), SOME))
        return [
            ids for part in parts for ids in tokenizer(part, truncation=True, max_length=job["max_length"])["input_ids"]
        ]

    ready = [row["text_a"] for row in table(job["file"])]
    ways = {
        "features": lambda: tokenized([row["text_a"] for row in table(job["file"])]),
        "tokenizer": lambda: tokenized(ready),
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


class FirstBatch(transformers.TrainerCallback):
    """Notes when the first batch is there."""

    at: float | None = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.at = self.at or time.time()


def training(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Prepare nothing, as onion's side; the job is that one's, with the other values of Settings by their names."""

    def work(steps: int) -> Answer:
        torch.set_num_threads(job["threads"])
        transformers.set_seed(job["seed"])
        tokenizer = transformers.AutoTokenizer.from_pretrained(job["encoder"])
        first = FirstBatch()
        with tempfile.TemporaryDirectory() as room:
            trainer = trainer_of(dict(job), classification(dict(job), tokenizer), tokenizer, room)
            trainer.args.max_steps = steps
            trainer.add_callback(first)
            reached = trainer.train().global_step
        assert first.at is not None
        return {"first": first.at - job["begun"], "steps": reached}

    return work
