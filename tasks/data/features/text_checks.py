"""Warnings about a file or a tokenizer that apply to most examples or tokens; a few such are normal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.examples import Example

EMPTY = "texts without any token"
UNKNOWN = "texts of unknown tokens only"
UNKNOWN_TOKENS = "unknown tokens"
UNLEARNED = "examples without anything to learn"

# Two thirds of the tokens of Chinese texts are unknown to minilm, the default encoder.
UNFIT = "does the vocabulary fit these texts? The encoder minilm is for English, wiki-zh for Chinese"
ADVICE = {
    EMPTY: "are the texts missing, or is the tokenizer incomplete?",
    UNKNOWN: UNFIT,
    UNKNOWN_TOKENS: UNFIT,
    UNLEARNED: "does the file say where the answers are?",
}
TOGETHER = ((EMPTY, UNKNOWN), (UNLEARNED,))
"""Kinds that are reported if their sum is more than half of the examples."""


class Tally:
    """Counts examples as they are made, and notes what applies to more than half of them, or of their tokens.

    An example is empty if it has special tokens only, and unknown if its other tokens are all unknown. Special tokens
    do not count as tokens.

    Args:
        tokenizer: made the ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._special = tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id
        self._unknown = tokenizer.unk_id
        self._examples = self._tokens = self._unknown_tokens = 0
        self._found: Counter[str] = Counter()

    def add(self, examples: Sequence[Example], unlearned: int = 0) -> None:
        """Count examples.

        Args:
            examples: with ``ids``.
            unlearned: how many of them have nothing to learn from.
        """
        if not examples:
            return
        ids = [example["ids"] for example in examples]
        flat, ends = np.concatenate(ids), np.cumsum([len(each) for each in ids])
        pad, cls, sep = self._special
        special = (flat == pad) | (flat == cls) | (flat == sep)  # numpy's isin takes ten times as long for one text
        empty, unknown = _spanned(special, ends), _spanned(special | (flat == self._unknown), ends)
        self._examples += len(examples)
        self._tokens += int(len(flat) - special.sum())
        self._unknown_tokens += int((flat == self._unknown).sum())
        self._found += Counter({EMPTY: empty, UNKNOWN: unknown - empty, UNLEARNED: unlearned})

    def note(self, notes: Counter[str]) -> None:
        """Add to ``notes`` what applies to most examples or tokens, with the number of these."""
        found = {kind: self._found[kind] for kinds in TOGETHER if self._most(kinds) for kind in kinds}
        told = {_told(kind, self._examples): count for kind, count in found.items() if count}
        if 2 * self._unknown_tokens > self._tokens and not found.get(UNKNOWN):
            told[_told(UNKNOWN_TOKENS, self._tokens)] = self._unknown_tokens
        notes.update(told)

    def _most(self, kinds: Sequence[str]) -> bool:
        return 2 * sum(self._found[kind] for kind in kinds) > self._examples


def _told(kind: str, of: int) -> str:
    return f"{kind}, out of {of} ({ADVICE[kind]})"


def _spanned(holds: np.ndarray, ends: np.ndarray) -> int:
    """Return for how many examples a condition holds for every token; ``ends`` are the ends of the examples."""
    before = np.zeros(len(holds) + 1, np.int64)  # how many tokens before each fulfil it
    np.cumsum(holds, out=before[1:])
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return int((before[ends] - before[starts] == ends - starts).sum())
