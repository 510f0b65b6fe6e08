"""The tasks by onion's names, and a job's model as it is before the first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers

from benchmarks.results.hugging_face import answers, tags, texts
from benchmarks.results.hugging_face.training import Prepared

TASKS: dict[str, Callable[..., Prepared]] = {
    "classify": texts.classification,
    "regress": texts.regression,
    "tag": tags.tagging,
    "read": answers.reading,
}


def prepared_of(job: dict[str, Any]) -> tuple[Prepared, Any]:
    """Seed everything, and return the job's task, ready to be trained, and the tokenizer."""
    transformers.set_seed(job["seed"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["encoder"])
    return TASKS[job["task"]](job, tokenizer), tokenizer
