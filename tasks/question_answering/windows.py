"""A question and its context as windows of tokens, and the position of the answer in them.

Source: google-research/bert ``run_squad.py``, which ERNIE and PALM follow. Here, offsets map tokens to the context, so
nothing has to be searched for afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import numpy as np

from onion.models.tokenizer import Encoding
from onion.tasks.data.features.examples import Example
from onion.tasks.data.texts import CUT
from onion.tasks.question_answering.positions import NOWHERE, UNKNOWN
from onion.tasks.question_answering.questions import Answer, Question


@attrs.frozen
class Windows:
    """The windows over the context of one question.

    Attributes:
        encodings: the windows, each with the whole question.
        begin: the position in each window of its first context token.
        firsts: int64 [windows], the index in the context of that token.
        counts: int64 [windows], the number of context tokens in each window.
        offsets: int64 [tokens, 2], of each token of the context, in code points.
    """

    encodings: Sequence[Encoding]
    begin: int
    firsts: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, encodings: Sequence[Encoding], stride: int) -> Windows:
        """Find the context in the windows that ``Tokenizer.windows`` returns for one pair with this stride."""
        begin, behind = _context(encodings[0])
        counts = np.array([len(encoding) - begin - behind for encoding in encodings])
        step = min(int(counts[0]), stride)
        offsets = [encoding.alignment[0][begin:-behind] for encoding in encodings]
        whole = np.concatenate([*(some[:step] for some in offsets[:-1]), offsets[-1]])
        return cls(encodings, begin, step * np.arange(len(encodings)), counts, whole)

    def places(self, answer: Answer) -> np.ndarray | None:
        """Return the positions in each window of the first and the last token that overlap an answer.

        Returns:
            int64 [windows, 2]; ``NOWHERE`` twice for windows without both. None if that is the case for all windows.
        """
        first = np.searchsorted(self.offsets[:, 1], answer.start, "right")
        last = np.searchsorted(self.offsets[:, 0], answer.end, "left") - 1
        held = (self.firsts <= first) & (first <= last) & (last < self.firsts + self.counts)
        if not held.any():
            return None
        return np.where(held[:, None], self.begin + np.array([first, last]) - self.firsts[:, None], NOWHERE)

    def cores(self) -> np.ndarray:
        """Return the context tokens that have more context in each window than in any other.

        Returns:
            int64 [windows, 2], begin and end, counted from the window's first context token. Every token of the context
            is in the core of exactly one window, and a core has no gaps.
        """
        # One entry for each token of each window, not for all pairs of both: long contexts have thousands of each.
        window = np.repeat(np.arange(len(self.firsts)), self.counts)
        counts = self.counts[window]
        place = np.arange(len(window)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        token = self.firsts[window] + place
        # BERT's score, times 100: the smaller side, plus a hundredth of the window's length; the first of equal ones.
        fullness = 100 * np.minimum(place, counts - 1 - place) + counts
        best = np.lexsort((window, -fullness, token))
        owner = window[best][np.flatnonzero(np.diff(token[best], prepend=-1))]
        numbers = np.arange(len(self.firsts))
        edges = [np.searchsorted(owner, numbers, side) for side in ("left", "right")]
        cores: np.ndarray = np.stack(edges, axis=1) - self.firsts[:, None]
        return cores


def _context(window: Encoding) -> tuple[int, int]:
    """Return where the context begins in a window, and the number of special tokens after it."""
    second = np.flatnonzero(window.types == 1)  # [CLS] question [SEP] context [SEP]; question <sep> context <sep> <cls>
    if len(second):
        return int(second[0]), len(window) - int(second[-1])
    return int(np.flatnonzero(window.alignment[1] < 0)[-2]) + 1, 1  # RoBERTa's <s> question </s></s> context </s>


def examples_of(windows: Windows, row: int) -> list[Example]:
    """Return an example for each window.

    Returns:
        ``row``; ``ids``, ``types``: int64 [length]; ``begin``: as in Windows; ``offsets``: int64 [context tokens, 2],
        of the context in the window; ``core_begin``, ``core_end``: see ``Windows.cores``.
    """
    parts = zip(windows.encodings, windows.firsts, windows.counts, windows.cores().tolist(), strict=True)
    return [
        {
            "row": row,
            "ids": encoding.ids,
            "types": encoding.types,
            "begin": windows.begin,
            "offsets": windows.offsets[first : first + count],
            "core_begin": core_begin,
            "core_end": core_end,
        }
        for encoding, first, count, (core_begin, core_end) in parts
    ]


def targets(question: Question, windows: Windows, notes: Counter[str]) -> np.ndarray:
    """Return the target positions of the first and the last token in each window, int64 [windows, 2].

    The target is the first answer that is at its position and completely in some window; ``NOWHERE`` in windows without
    it, and if the question has no answer; ``UNKNOWN`` if no answer is at its position.

    Args:
        question: with its answers.
        windows: over its context.
        notes: receive the numbers of answers at wrong positions, and of questions that are ignored.
    """
    standing = [answer for answer in question.answers if answer.stands_in(question.context)]
    if len(standing) < len(question.answers):
        notes["answers not found at their answer_start, ignored"] += len(question.answers) - len(standing)
    for answer in standing:
        places = windows.places(answer)
        if places is not None:
            return places
    if question.answers:
        notes["questions without an answer in any window, ignored"] += 1
    return np.full((len(windows.firsts), 2), UNKNOWN if question.answers else NOWHERE)


def note_cut(notes: Counter[str], question: Question, windows: Windows, most: int) -> None:
    """Count a question that was truncated to its first ``most`` tokens."""
    offsets, words = windows.encodings[0].alignment
    own = np.flatnonzero(words[: windows.begin] >= 0)
    if len(own) == most and offsets[own[-1], 1] < len(question.text.rstrip()):
        notes[f"questions longer than {most} tokens{CUT}"] += 1
