"""What is wrong with a file, or with the tokenizer, where it is so of most examples; of a few it is how texts are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.examples import Example

EMPTY = "texts without any token of their own"
UNKNOWN = "texts of tokens that the vocabulary does not know"
UNLEARNED = "examples that there is nothing to learn from"

ADVICE = {
    EMPTY: "are the texts there, and is the tokenizer whole?",
    UNKNOWN: "is the vocabulary one for texts like these?",
    UNLEARNED: "does the file say where the answers are?",
}
TOGETHER = ((EMPTY, UNKNOWN), (UNLEARNED,))
"""What is told where the sum of it is more than half."""


class Tally:
    """Counts examples as they are made, and notes what is so of more than half of all.

    An example is empty if its ids are those of special tokens only, and unknown if there are unknown ones besides.

    Args:
        tokenizer: that made the ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._special = tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id
        self._unknown = tokenizer.unk_id
        self._examples = 0
        self._found: Counter[str] = Counter()

    def add(self, examples: Sequence[Example], unlearned: int = 0) -> None:
        """Count some more.

        Args:
            examples: with ``ids``.
            unlearned: how many of them there is nothing to learn from.
        """
        if not examples:
            return
        ids = [example["ids"] for example in examples]
        flat, ends = np.concatenate(ids), np.cumsum([len(each) for each in ids])
        pad, cls, sep = self._special
        special = (flat == pad) | (flat == cls) | (flat == sep)  # numpy's isin takes ten times as long for one text
        empty, unknown = _spanned(special, ends), _spanned(special | (flat == self._unknown), ends)
        self._examples += len(examples)
        self._found += Counter({EMPTY: empty, UNKNOWN: unknown - empty, UNLEARNED: unlearned})

    def note(self, notes: Counter[str]) -> None:
        """Note what is so of most: ``what, of all 5000`` -> of how many."""
        for kinds in TOGETHER:
            if 2 * sum(self._found[kind] for kind in kinds) > self._examples:
                told = {f"{kind} ({ADVICE[kind]}), of {self._examples} in all": self._found[kind] for kind in kinds}
                notes.update({what: count for what, count in told.items() if count})


def _spanned(holds: np.ndarray, ends: np.ndarray) -> int:
    """Of how many examples it holds for every token; ``ends`` says where they end."""
    before = np.zeros(len(holds) + 1, np.int64)  # for how many tokens it holds before each
    np.cumsum(holds, out=before[1:])
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return int((before[ends] - before[starts] == ends - starts).sum())
