"""Sides: texts to ids by transformers' fast tokenizer with its own batching, and the fine-tuning by its Trainer."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers

from benchmarks.data.work import TEXTS_PER_CALL, Answer, Way, texts_a_second
from benchmarks.results.files import table
from benchmarks.results.hugging_face import classification, trainer_of

LIBRARIES = ("tokenizers", "torch", "transformers")


def texts(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Read the file once; the job is that of onion's side."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["tokenizer"])
    if not tokenizer.is_fast:
        raise SystemExit("transformers gave its slow tokenizer")

    def tokenized(tokenizer: Any, texts: list[str]) -> list[list[int]]:
        parts = (texts[start : start + TEXTS_PER_CALL] for start in range(0, len(texts), TEXTS_PER_CALL))
        return [
            ids for part in parts for ids in tokenizer(part, truncation=True, max_length=job["max_length"])["input_ids"]
        ]

    ready = [row["text_a"] for row in table(job["file"])]
    ways: dict[str, Way] = {
        "features": lambda tokenizer: tokenized(tokenizer, [row["text_a"] for row in table(job["file"])]),
        "tokenizer": lambda tokenizer: tokenized(tokenizer, ready),
    }
    return texts_a_second(ways, lambda: tokenizer)


class FirstBatch(transformers.TrainerCallback):
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
