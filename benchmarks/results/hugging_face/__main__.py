"""Hugging Face's side of a piece: ``python -m benchmarks.results.hugging_face JOB.json`` writes the answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import transformers

from benchmarks.results.hugging_face.tasks import prepared_of
from benchmarks.results.hugging_face.training import trainer_of


def answer(job: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train, and measure what the last step left; the seconds begin with reading the files and end with that step."""
    begun = perf_counter()
    prepared, tokenizer = prepared_of(job)
    trainer = trainer_of(job, prepared, tokenizer, folder)
    steps = trainer.train().global_step
    seconds = round(perf_counter() - begun, 1)
    found = {title: prepared.figures(trainer, path) for title, path in job["dev"].items()}
    return {
        "figures": {title: {name: float(figures[name]) for name in job["figures"]} for title, figures in found.items()},
        "seconds": seconds,
        "steps": steps,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }


def main(path: str) -> None:
    """Do a job."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    torch.set_num_threads(job["threads"])
    found = answer(job, str(Path(path).parent / "trainer"))
    Path(job["answer"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
