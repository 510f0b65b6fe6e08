"""A side: the same fine-tuning by transformers' Trainer, set as in benchmarks/results/hugging_face."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers

from benchmarks.common.worker import Answer, serve
from benchmarks.results.hugging_face import texts
from benchmarks.results.hugging_face.training import trainer_of


class FirstBatch(transformers.TrainerCallback):
    """Notes when the first batch is there."""

    at: float | None = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Look at the clock, once."""
        self.at = self.at or time.time()


def prepare(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Nothing, as in ``training``; the job is that one's with Settings' other values by their names."""

    def work(steps: int) -> Answer:
        """Train; return the seconds to the first batch."""
        torch.set_num_threads(job["threads"])
        transformers.set_seed(job["seed"])
        tokenizer = transformers.AutoTokenizer.from_pretrained(job["encoder"])
        first = FirstBatch()
        with tempfile.TemporaryDirectory() as room:
            trainer = trainer_of(dict(job), texts.classification(dict(job), tokenizer), tokenizer, room)
            trainer.args.max_steps = steps
            trainer.add_callback(first)
            reached = trainer.train().global_step
        assert first.at is not None
        return {"first": first.at - job["begun"], "steps": reached}

    return work


if __name__ == "__main__":
    serve(prepare, ("torch", "transformers"))
