"""Segments of two sentences or more, cut in two at a sentence border."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.flags import IN_SENTENCE, Flags, starts
from onion.tasks.pretraining.corpus.places import unit_places
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.task import PretrainingTask

Text: TypeAlias = tuple[NDArray[Any], Flags]
"""Ids and flags of consecutive tokens."""

SPECIAL = 3
"""The special tokens of ``[CLS] A [SEP] B [SEP]``."""


@attrs.frozen(eq=False)
class Halves:
    """The segments of a corpus that can be cut in two at a sentence border.

    Attributes:
        segments: all, each with room for the special tokens of a pair.
        chosen: the numbers of those with a sentence border inside, int64 ``[chosen]``. They begin and end with whole
            sentences: where a sentence is cut would tell which part comes first.
        whole: whether a segment begins and ends with whole sentences, bool ``[segments]``.
    """

    segments: Segments
    chosen: NDArray[np.int64]
    whole: NDArray[np.bool_]

    @classmethod
    def of(cls, task: PretrainingTask, corpus: Corpus) -> Halves:
        """Find the segments.

        Raises:
            DataError: there are none, or ``max_length`` leaves no room for text.
        """
        most = room(task, SPECIAL)
        segments = Segments.of(corpus, most)
        found = segments.found("halves", lambda: _chosen(segments))
        if not len(found["chosen"]):
            told = f"no document of the corpus has two sentences in a row of at most {most} tokens together"
            raise DataError(f"{task.name}: {told}; this task needs documents of several sentences, or more max_length")
        return cls(segments, **found)

    @property
    def lengths(self) -> NDArray[np.integer]:
        """The tokens of each pair, with special ones, int32 ``[chosen]``."""
        return self.segments.lengths[self.chosen] + SPECIAL

    def cut(self, number: int, draws: Draws) -> tuple[Text, Text]:
        """Return the two parts of a chosen segment, cut at a random border between two of its sentences."""
        segment = self.segments[int(self.chosen[number])]
        borders = starts(segment.flags, IN_SENTENCE)[1:]
        border = int(borders[draws.below(len(borders), "border")])
        ids, flags = segment.ids, segment.flags
        return (ids[:border], flags[:border]), (ids[border:], flags[border:])


def _chosen(segments: Segments) -> Arrays:
    sentences = unit_places(segments.corpus, IN_SENTENCE)
    whole = segments.whole(sentences)
    return {"chosen": np.flatnonzero(whole & (segments.borders(sentences) > 0)), "whole": whole}
