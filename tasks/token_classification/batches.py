"""Windows of words as a batch, and where the words of each stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onion.tasks.batches import batch_of

if TYPE_CHECKING:
    from onion.tasks.data.features.examples import Example


def tagging_batch(examples: Sequence[Example], pad_id: int = 0) -> dict[str, Any]:
    """Make a batch of examples of ``onion.tasks.token_classification.task.TokenClassification``.

    Returns:
        The fields of ``batch_of``; ``firsts``, int64 [words], the index of each word's first token among all tokens of
        the batch without padding; lists with one entry per example: ``words``, the number of its words; ``own``, begin
        and end of those that belong to it; ``rows``, its row; ``begins``, the index of its first own word in the row;
        and, if the examples have them, ``tags``, int64 [words], IGNORED for words of other examples.
    """
    batch = batch_of(examples, pad_id)
    own = [tuple(example["own"].tolist()) for example in examples]
    firsts = [start + each["firsts"] for start, each in zip(starts(batch["lengths"]), examples, strict=True)]
    batch |= {
        "firsts": np.concatenate(firsts).astype(np.int64),
        "words": [len(example["firsts"]) for example in examples],
        "own": own,
        "rows": [example["row"] for example in examples],
        "begins": [example["word"] + begin for example, (begin, _) in zip(examples, own, strict=True)],
    }
    if "tags" in examples[0]:
        batch["tags"] = np.concatenate([example["tags"] for example in examples]).astype(np.int64)
    return batch


def grid(begins: np.ndarray, lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return ``begin, begin + 1, ...`` for each begin, int64 [batch, longest]; the last is repeated."""
    steps = np.arange(max(lengths))
    numbers: np.ndarray = np.asarray(begins)[:, None] + np.minimum(steps, np.asarray(lengths)[:, None] - 1)
    return numbers


def starts(lengths: Sequence[int]) -> np.ndarray:
    """Return where each part starts when they are concatenated."""
    return np.cumsum(lengths) - lengths
