"""``sentence-reordering``: the segments of a paragraph are shuffled, and the label is their order.

Source: ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412): a paragraph is cut into 1 to m segments at random, which are
shuffled; the classes are all orders, as many as the sum of n! for n from 1 to m. Neither m nor code or data were
published. Ours are: m (3), how n and the cuts are drawn, the numbers of the labels, a ``[SEP]`` behind each segment,
and that paragraphs of one sentence are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, permutations
from math import factorial
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.baselines import text_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.flags import IN_SENTENCE, Flags, starts
from onion.tasks.pretraining.corpus.places import unit_places
from onion.tasks.pretraining.corpus.segments import Segment, Segments
from onion.tasks.pretraining.examples import Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.validators import NATURAL
from onion.validation import Check, is_whole

Order = tuple[int, ...]


@attrs.frozen(kw_only=True)
class SentenceReordering(PretrainingTask):
    """Tell in which order the segments of a paragraph are: ``[CLS] S [SEP] S [SEP] ...``.

    A paragraph, or as many of its sentences in a row as fit, is cut between sentences into n segments, n from 1 to
    ``max_segments`` or, if it has fewer, the number of its sentences. In each pass n is drawn, then where to cut, then
    the order, each uniformly. The label is an order's number in :attr:`orders`: all of one segment, of two, and so on,
    and those of n segments as a dictionary has them. The class ``"312"`` means that the paragraph's third segment comes
    first, then its first one, then its second one.

    The number of segments can be seen, so that one class of six is right with chance 1/6 only, but one of one always:
    compare the accuracy with ``accuracy.segments`` of :meth:`baseline`.

    Attributes:
        max_segments: m, from 2 to 6. 3 makes 9 classes, 4 makes 33. Default 3.
        token_types: how many types of tokens the encoder has, its ``type_vocab_size``. The segments have the types
            0, 1, ... in the order of the example; those beyond have the last one. Default 2; ERNIE 2.0's configuration
            has 4.
        max_length: most tokens of an example, special ones included. Default 128.
    """

    name: ClassVar[str] = "sentence-reordering"
    task_id: ClassVar[int] = 3

    max_segments: int = attrs.field(
        default=3,
        validator=Check("an integer from 2 to 6", lambda value: is_whole(value) and 2 <= value <= 6, reads=int),
    )
    token_types: int = attrs.field(default=2, validator=NATURAL)

    @property
    def most_types(self) -> int:
        """See PretrainingTask."""
        return min(self.token_types, self.max_segments)

    @property
    def orders(self) -> Sequence[Order]:
        """The orders of 1 to ``max_segments`` segments, by their labels; each has the segments from 0."""
        return list(chain.from_iterable(permutations(range(many)) for many in range(1, self.max_segments + 1)))

    @property
    def classes(self) -> Sequence[str]:
        """The orders as digits from 1: ``"1"``, ``"12"``, ``"21"``, ``"123"``, ..."""
        return ["".join(str(each + 1) for each in order) for order in self.orders]

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each paragraph, or part of one, with two sentences or more.

        Raises:
            DataError: there is none.
        """
        most = room(self, 1 + self.max_segments)
        segments = Segments.of(corpus, most, within="paragraph")
        found = segments.found("reordering", lambda: _several(segments))
        chosen = found["chosen"]
        if not len(chosen):
            raise DataError(
                f"{self.name}: no paragraph of the corpus has two sentences in a row of at most {most} tokens "
                "together; this task needs texts with paragraphs of several sentences, or a greater max_length"
            )
        sampler = _Sampler(segments, chosen, self.orders, self.max_segments, range(self.token_types))
        lengths = segments.lengths[chosen] + 1 + np.minimum(found["sentences"], self.max_segments)
        fingerprint = f"{self!r} of {segments.fingerprint} by {seed}"
        return DrawnExamples(lengths, fingerprint, seed, sampler)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest`` and ``accuracy.segments``, of the commonest order of as many segments."""
        return {
            "accuracy.commonest": text_baselines.commonest(train, held_out),
            "accuracy.segments": text_baselines.by_number(train, held_out, _many),
        }


def _several(segments: Segments) -> Arrays:
    """Find the segments of two sentences or more, and how many each has."""
    sentences = unit_places(segments.corpus, IN_SENTENCE)
    inner = segments.borders(sentences)
    chosen = np.flatnonzero(segments.whole(sentences) & (inner > 0))  # a part of a sentence would come first or last
    return {"chosen": chosen, "sentences": inner[chosen] + 1}


@attrs.frozen(eq=False)
class _Sampler:
    segments: Segments
    chosen: NDArray[np.int64]
    orders: Sequence[Order]
    most: int
    types: Sequence[int]

    def __call__(self, number: int, draws: Draws) -> Example:
        segment = self.segments[int(self.chosen[number])]
        borders = starts(segment.flags, IN_SENTENCE)[1:]
        many = 1 + draws.below(min(self.most, len(borders) + 1), "segments")
        label = sum(map(factorial, range(1, many))) + draws.below(factorial(many), "order")
        parts = _parts(segment, np.sort(borders[draws.order(len(borders), "cuts")[: many - 1]]))
        tokenizer = self.segments.corpus.tokenizer
        shuffled = [parts[each] for each in self.orders[label]]
        return {**joined(shuffled, tokenizer.cls_id, tokenizer.sep_id, self.types), "label": label}


def _parts(segment: Segment, cuts: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Flags]]:
    return list(zip(np.split(segment.ids, cuts), np.split(segment.flags, cuts), strict=True))


def _many(example: Example) -> int:
    """Return how many segments an example has: each ends with a ``[SEP]``, the last token."""
    return int((example["ids"] == example["ids"][-1]).sum())
