"""The examples of a pretraining task: from a corpus to batches.

    corpus -> samples (ids and a label) -> masked samples -> batch

An example is a dict of arrays. A sampler gives ``ids`` and ``types``, int64 ``[length]``, with special tokens;
``flags``, uint8 ``[length]``, 0 at special tokens; and, where the task has classes, ``label``, an integer, or
``token_labels``, int64 ``[length]``, UNLABELLED where a token has none. Masking adds ``masked``, the masked places,
``originals``, the ids that stood there, and ``levels``, the kind of unit of each, int64 ``[masked]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onion.data.batching import pad
from onion.data.source import Indexed
from onion.tasks.batches import batch_of

UNLABELLED = -100
"""The label of tokens without one, which cross-entropy ignores by default."""


FIRST, SECOND = 0, 1
"""Types of the tokens of the first text, with ``[CLS]``, and of the second."""

Example = dict[str, Any]


class PassExamples(Protocol):
    """Examples that differ from pass to pass: a source for ``DataProvider``."""

    @property
    def lengths(self) -> NDArray[np.integer]:
        """Most tokens that each example has in any pass, ``[examples]``."""

    @property
    def fingerprint(self) -> str:
        """Identifies corpus and settings."""

    def __len__(self) -> int: ...

    def of_pass(self, pass_id: int) -> Indexed:
        """Return the examples of a pass; the same for the same pass."""


def joined(
    segments: Sequence[tuple[NDArray[Any], NDArray[np.uint8]]],
    cls_id: int,
    sep_id: int,
    types: Sequence[int] = (FIRST, SECOND),
) -> Example:
    """Return ``[CLS] A [SEP] B [SEP] ...`` as an example without label.

    Args:
        segments: ids and flags of each segment.
        cls_id: of ``[CLS]``.
        sep_id: of ``[SEP]``, which ends each segment.
        types: of the segments; the last one is that of all further ones.
    """
    ids: list[NDArray[Any]] = [np.array([cls_id])]
    flags: list[NDArray[np.uint8]] = [np.zeros(1, np.uint8)]
    kinds: list[int] = [types[0]]
    counts = [1]
    for number, (tokens, bits) in enumerate(segments):
        ids += [tokens, np.array([sep_id])]
        flags += [bits, np.zeros(1, np.uint8)]
        kinds.append(types[min(number, len(types) - 1)])
        counts.append(len(tokens) + 1)
    return {
        "ids": np.concatenate(ids).astype(np.int64),
        "types": np.repeat(np.array(kinds, np.int64), counts),
        "flags": np.concatenate(flags),
    }


def collate(examples: Sequence[Example], pad_id: int = 0) -> dict[str, Any]:
    """Make a batch: that of ``onion.tasks.batches.batch_of``, and what the heads need.

    Positions are lists, so they stay on the host, as ``lengths`` do.

    Returns:
        Beside its fields, if the examples have them: ``labels``, int64 ``[batch]``, or of tokens ``[labelled]`` with
        ``labelled_positions``; ``masked_positions``, with ``word_labels`` and ``word_levels``, int64 ``[masked]``.
        Positions are ascending indices into the flattened ``[batch * length]``.
    """
    batch = batch_of(examples, pad_id)
    length = batch["input_ids"].shape[1]
    if "token_labels" in examples[0]:
        labels = pad([each["token_labels"] for each in examples], UNLABELLED, np.int64).reshape(-1)
        batch["labelled_positions"] = np.flatnonzero(labels != UNLABELLED).tolist()
        batch["labels"] = labels[labels != UNLABELLED]
    if "masked" in examples[0]:
        places = [row * length + each["masked"] for row, each in enumerate(examples)]
        batch["masked_positions"] = np.concatenate(places).tolist()
        batch["word_labels"] = np.concatenate([each["originals"] for each in examples])
        batch["word_levels"] = np.concatenate([each["levels"] for each in examples])
    return batch
