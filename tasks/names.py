"""The names of the tasks, which the command line knows without loading Paddle; ``registry.py`` has the tasks."""

from __future__ import annotations

from typing import Any

TASK_NAMES = (
    "classification",
    "regression",
    "matching",
    "multilabel",
    "token-classification",
    "question-answering",
    "masked-lm",
)

OLD_NAMES = {
    "classify": "classification",
    "mask": "masked-lm",
    "match": "matching",
    "read": "question-answering",
    "regress": "regression",
    "tag": "token-classification",
}
"""Earlier names of the tasks: aliases wherever a task is named, and in the records of older runs."""


def current_name(name: Any) -> Any:
    """Return the current name of a task; anything else stays as it is."""
    return OLD_NAMES.get(name, name) if isinstance(name, str) else name


PRETRAINING_TASK_NAMES = (
    "knowledge-masking",
    "capitalisation",
    "token-document",
    "sentence-reordering",
    "sentence-distance",
    "discourse-relation",
    "ir-relevance",
    "next-sentence",
    "sentence-order",
)
"""The tasks of ``onion.tasks.pretraining.registry``, in its order."""
