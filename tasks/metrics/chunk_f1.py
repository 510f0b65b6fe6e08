"""Chunks, such as names of persons, in rows of tags; precision, recall and F1 of chunks.

Chunks are defined as in conlleval and by default in seqeval, which tolerate a missing B-: a chunk starts with B- or S-,
and with any other tag that does not continue the chunk before, which is the case after O, another type, or the last tag
of a chunk (E-, S-).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from onion.tasks.data.labels import Labels

OUTSIDE = "O"
IGNORED = -100
"""Replaces the tag's number for words that are counted in another window."""


@attrs.frozen
class Chunks:
    """The chunks in a row of tags, in order.

    Attributes:
        begins, lasts: int64 [chunks], the first and the last word of each.
        kinds: int64 [chunks], the number of each type.
    """

    begins: np.ndarray
    lasts: np.ndarray
    kinds: np.ndarray


class TagScheme:
    """Reads tags such as B-PER and I-PER; also S- (single), E- (last) and M- (like I-), and O.

    With other tags, such as parts of speech, every word is a chunk. B or I without a type has the type "_".

    Args:
        labels: the tags.

    Attributes:
        kinds: the types, in alphabetical order.
    """

    def __init__(self, labels: Labels) -> None:
        parts = [_parts(tag) for tag in labels]
        self.kinds = sorted({kind for prefix, kind in parts if prefix != OUTSIDE})
        numbers = {kind: number for number, kind in enumerate(self.kinds)}
        self._kind = np.array([numbers.get(kind, -1) for _, kind in parts], np.int64)
        self._inside = np.array([prefix != OUTSIDE for prefix, _ in parts], bool)
        self._first = np.array([prefix in "BS" for prefix, _ in parts], bool)
        self._last = np.array([prefix in "ESO" for prefix, _ in parts], bool)

    def chunks(self, tags: np.ndarray, starts: np.ndarray) -> Chunks:
        """Find the chunks.

        Args:
            tags: int64 [words], the numbers of the tags of all rows, concatenated.
            starts: int64 [rows], ascending: where each row starts.
        """
        kinds, fresh = self._kind[tags], self._first[tags]
        fresh[1:] |= self._last[tags[:-1]] | (kinds[1:] != kinds[:-1])
        fresh[starts] = True
        inside = self._inside[tags]
        cut = np.append(fresh | ~inside, True)
        begins = np.flatnonzero(inside & fresh)
        return Chunks(begins, np.flatnonzero(inside & cut[1:]), kinds[begins])


def _parts(tag: str) -> tuple[str, str]:
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if tag[0] in "BIMES" and tag[1:2] in ("", "-"):
        return tag[0], tag[2:] or "_"
    return "S", tag


class ChunkMetric:
    """Precision, recall and F1 of chunks, over all types and F1 by type, and the accuracy of tags.

    A chunk is correct if begin, end and type are. A figure without any chunk is 0, as with seqeval's
    ``zero_division=0``.

    A batch has ``rows``, the row of each example; ``begins``, the number in the row of its first counted word; and
    ``tags``, int64, the true tags of all words, :data:`IGNORED` for words that are not counted. Outputs are, for each
    example, the predicted ``Tags`` of the counted words. Chunks are found after the rows have been reassembled.

    Args:
        labels: the tags.
    """

    def __init__(self, labels: Labels) -> None:
        self._scheme = TagScheme(labels)
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._words = [np.zeros((0, 4), np.int64)]

    def update(self, outputs: Any, batch: Any) -> None:
        """Keep row, number, true and predicted tag of every word."""
        counts = [len(tags) for tags in outputs]
        numbers = [np.arange(begin, begin + count) for begin, count in zip(batch["begins"], counts, strict=True)]
        true = np.asarray(batch["tags"])
        columns = [np.repeat(batch["rows"], counts), np.concatenate(numbers), true[true != IGNORED]]
        self._words.append(np.stack([*columns, np.concatenate([tags.numbers for tags in outputs])], axis=1))

    def state_dict(self) -> dict[str, Any]:
        """Return the words so far."""
        return {"words": np.concatenate(self._words)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the words."""
        self._words = [np.array(saved["words"])]

    def result(self) -> dict[str, float]:
        """Return the figures, each from 0 to 1: precision, recall, f1, accuracy, and f1.TYPE for each type."""
        words = np.concatenate(self._words)
        rows, _, true, predicted = words[np.lexsort((words[:, 1], words[:, 0]))].T
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        wanted, found = (self._scheme.chunks(tags, starts) for tags in (true, predicted))
        right, in_truth, in_prediction = (
            np.bincount(kinds, minlength=len(self._scheme.kinds))
            for kinds in (_common(wanted, found), wanted.kinds, found.kinds)
        )
        by_kind = zip(self._scheme.kinds, _f1(right, in_truth, in_prediction), strict=True)
        return {
            "precision": float(right.sum() / max(in_prediction.sum(), 1)),
            "recall": float(right.sum() / max(in_truth.sum(), 1)),
            "f1": float(_f1(right.sum(), in_truth.sum(), in_prediction.sum())),
            "accuracy": float((true == predicted).sum() / max(len(true), 1)),
            **{f"f1.{kind}": float(value) for kind, value in by_kind},
        }


def _common(one: Chunks, other: Chunks) -> np.ndarray:
    """Return the types of the chunks that both have."""
    _, here, there = np.intersect1d(one.begins, other.begins, assume_unique=True, return_indices=True)
    same = (one.lasts[here] == other.lasts[there]) & (one.kinds[here] == other.kinds[there])
    kinds: np.ndarray = one.kinds[here][same]
    return kinds


def _f1(right: np.ndarray, in_truth: np.ndarray, in_prediction: np.ndarray) -> np.ndarray:
    f1: np.ndarray = 2 * right / np.maximum(in_truth + in_prediction, 1)
    return f1
