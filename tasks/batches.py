"""Examples of texts as a padded batch, and the part of a batch that an encoder takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onion.data.batching import pad

if TYPE_CHECKING:
    from onion.tasks.data.features.examples import Example


def batch_of(examples: Sequence[Example], pad_id: int = 0) -> dict[str, Any]:
    """Make a batch of examples, padded on the right to the longest.

    ``lengths`` and ``places`` are lists, so they stay on the host: the encoder computes the positions of the tokens
    there, without waiting for a GPU.

    Returns:
        ``input_ids``, ``token_type_ids``: int64 ``[batch, length]``; ``lengths``, ``places``: lists of ``batch``
        integers (places are 0 if the examples have none); if the examples have a ``label``, ``labels``: int64 or
        float32 ``[batch]``.
    """
    ids = [example["ids"] for example in examples]
    batch = {
        "input_ids": pad(ids, pad_id, np.int64),
        "token_type_ids": pad([example["types"] for example in examples], 0, np.int64),
        "lengths": [len(each) for each in ids],
        "places": [example.get("place", 0) for example in examples],
    }
    if "label" in examples[0]:
        labels = np.array([example["label"] for example in examples])
        batch["labels"] = labels.astype(np.float32) if labels.dtype.kind == "f" else labels
    return batch


def arguments(batch: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an encoder: ids, types, the mask (numpy, bool ``[batch, length]``).

    Also ``task_type_ids``, if the batch has them (see ``onion.tasks.networks.multi_head``).
    """
    tasks = {"task_type_ids": batch["task_type_ids"]} if "task_type_ids" in batch else {}
    return {
        "input_ids": batch["input_ids"],
        "token_type_ids": batch["token_type_ids"],
        "attention_mask": mask_of(batch),
        **tasks,
    }


def mask_of(batch: dict[str, Any]) -> np.ndarray:
    """Return which positions of a batch hold a token: bool ``[batch, length]``."""
    return np.arange(batch["input_ids"].shape[1]) < np.array(batch["lengths"])[:, None]
