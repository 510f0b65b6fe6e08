"""A question and its context as windows of tokens, and where in them the answer stands.

Source: google-research/bert ``run_squad.py``, which ERNIE and PALM follow. Unlike there, offsets say where tokens come
from, so nothing has to be searched for afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import numpy as np

from onion.models.tokenizer import Encoding
from onion.tasks.data.features.examples import Example
from onion.tasks.question_answering.questions import Answer, Question

NOWHERE = 0
"""The place of [CLS]: learned in windows that do not hold the answer."""
UNKNOWN = -1
"""Learned in no window: no right answer is known."""


@attrs.frozen
class Windows:
    """The windows over the context of one question.

    Attributes:
        encodings: the windows, each with the whole question.
        begin: the place in each window of its first context token.
        firsts: int64 [windows], the number in the context of that token.
        counts: int64 [windows], context tokens in each window.
        offsets: int64 [tokens, 2], where each token of the context comes from, in code points.
    """

    encodings: Sequence[Encoding]
    begin: int
    firsts: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, encodings: Sequence[Encoding], stride: int) -> Windows:
        """Find the context in windows as ``Tokenizer.windows`` gives them, with this stride, for one pair."""
        begin, behind = _context(encodings[0])
        counts = np.array([len(encoding) - begin - behind for encoding in encodings])
        step = min(int(counts[0]), stride)
        offsets = [encoding.alignment[0][begin:-behind] for encoding in encodings]
        whole = np.concatenate([*(some[:step] for some in offsets[:-1]), offsets[-1]])
        return cls(encodings, begin, step * np.arange(len(encodings)), counts, whole)

    def places(self, answer: Answer) -> np.ndarray | None:
        """Return where the first and the last token that hold some of an answer stand in each window.

        Returns:
            int64 [windows, 2]; a window that does not hold both has ``NOWHERE`` twice. None if that is so of all.
        """
        first = np.searchsorted(self.offsets[:, 1], answer.start, "right")
        last = np.searchsorted(self.offsets[:, 0], answer.end, "left") - 1
        held = (self.firsts <= first) & (first <= last) & (last < self.firsts + self.counts)
        if not held.any():
            return None
        return np.where(held[:, None], self.begin + np.array([first, last]) - self.firsts[:, None], NOWHERE)

    def cores(self) -> np.ndarray:
        """Return which context tokens of each window see more of the context there than in any other window.

        Returns:
            int64 [windows, 2], first and behind the last, counted from the window's first context token. Every token
            of the context is in the core of one window, and a core has no gaps.
        """
        token = np.arange(len(self.offsets))
        left = token - self.firsts[:, None]
        right = self.firsts[:, None] + self.counts[:, None] - 1 - token
        # BERT's score, times 100: the smaller side, and a hundredth of the window's length; the first of equal ones.
        fullness = np.where((left < 0) | (right < 0), -1, 100 * np.minimum(left, right) + self.counts[:, None])
        owner = fullness.argmax(axis=0)
        numbers = np.arange(len(self.firsts))
        edges = [np.searchsorted(owner, numbers, side) for side in ("left", "right")]
        cores: np.ndarray = np.stack(edges, axis=1) - self.firsts[:, None]
        return cores


def _context(window: Encoding) -> tuple[int, int]:
    """Where the context begins in a window, and how many special tokens stand behind it."""
    second = np.flatnonzero(window.types == 1)  # [CLS] question [SEP] context [SEP]; question <sep> context <sep> <cls>
    if len(second):
        return int(second[0]), len(window) - int(second[-1])
    return int(np.flatnonzero(window.alignment[1] < 0)[-2]) + 1, 1  # RoBERTa's <s> question </s></s> context </s>


def examples_of(windows: Windows, row: int) -> list[Example]:
    """Return an example for each window.

    Returns:
        ``row``; ``ids``, ``types``: int64 [length]; ``begin``: as in Windows; ``offsets``: int64 [context tokens, 2],
        of the window's part of the context; ``core_begin``, ``core_end``: of ``Windows.cores``.
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
    """Return the places of the first and the last token to learn in each window, int64 [windows, 2].

    The answer is the first one that stands where the file says and, whole, in some window. ``NOWHERE`` is learned in
    windows that do not hold it, and where the question has no answer; nothing (``UNKNOWN``) where no answer is right.

    Args:
        question: with its answers.
        windows: over its context.
        notes: told how many answers do not stand where the file says, and how many questions are not learned.
    """
    standing = [answer for answer in question.answers if answer.stands_in(question.context)]
    if len(standing) < len(question.answers):
        notes["answers that do not stand at their answer_start, not learned"] += len(question.answers) - len(standing)
    for answer in standing:
        places = windows.places(answer)
        if places is not None:
            return places
    if question.answers:
        notes["questions without an answer that stands in a window, not learned"] += 1
    return np.full((len(windows.firsts), 2), UNKNOWN if question.answers else NOWHERE)


def note_cut(notes: Counter[str], question: Question, windows: Windows, most: int) -> None:
    """Count a question that was cut to its first ``most`` tokens."""
    offsets, words = windows.encodings[0].alignment
    own = np.flatnonzero(words[: windows.begin] >= 0)
    if len(own) == most and offsets[own[-1], 1] < len(question.text.rstrip()):
        notes[f"questions longer than {most} tokens, cut"] += 1
