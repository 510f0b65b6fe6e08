"""``sentence-distance``: are two sentences neighbours, of the same document, or of two documents.

Source: ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412), whose classes are: 0, adjacent in a document; 1, of the same
document and not adjacent; 2, of two documents. Code and data were never published. Ours are: equal shares of the
three, the order (a neighbour follows), that all second sentences have similar lengths, and that the first sentence of
a document, which is no neighbour behind another one, is drawn only where there is nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.baselines import text_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.flags import IN_SENTENCE
from onion.tasks.pretraining.corpus.places import unit_places
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.examples import Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.length_matching import LengthMatching, limits
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.task import PretrainingTask

ADJACENT, SAME_DOCUMENT, OTHER_DOCUMENT = range(3)


@attrs.frozen(kw_only=True)
class SentenceDistance(PretrainingTask):
    """Tell how far a sentence B is from a sentence A: ``[CLS] A [SEP] B [SEP]``.

    Every sentence is an A for which all three kinds of B are there: the next sentence of the document; another one of
    the document, which is neither A's neighbour nor A; and one of another document. The latter two must be as long as
    the next sentence, give or take an eighth or one token, so that no length tells the class. In each pass the class
    is drawn, each with a probability of 1/3, and then B. So documents of up to three sentences give only sentences of
    another document, as do those whose sentences are of very different lengths.

    A sentence may have half of ``max_length``; of a longer one the end stands as A and the beginning as B.

    Attributes:
        max_length: most tokens of an example, special ones included. Default 128.
    """

    name: ClassVar[str] = "sentence-distance"
    task_id: ClassVar[int] = 4
    pair: ClassVar[bool] = True

    @property
    def classes(self) -> Sequence[str]:
        """``adjacent``, ``same document``, ``other document``."""
        return ("adjacent", "same document", "other document")

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each sentence that can have a B of each class.

        Raises:
            DataError: there is none, such as where all sentences are of one document.
        """
        most = room(self, 3) // 2
        segments = Segments.of(corpus, most, one_by_one=True)
        found = segments.found("distance", lambda: _sentences(segments, most))
        lengths = found.pop("longest")
        sampler = _Sampler(segments, found.pop("firsts"), found.pop("chosen"), LengthMatching(**found))
        if not len(lengths):
            raise DataError(
                f"{self.name}: no sentence of the corpus can have all of a neighbour, another sentence of the same "
                "document and one of another document, of similar lengths; this task needs several documents (in raw "
                "text there is a blank line between two) of four sentences or more"
            )
        fingerprint = f"{self!r} of {segments.fingerprint} by {seed}"
        return DrawnExamples(lengths, fingerprint, seed, sampler)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest``, ``accuracy.shared_tokens`` and ``accuracy.shared_bigrams``."""
        return {
            "accuracy.commonest": text_baselines.commonest(train, held_out),
            **text_baselines.overlap(train, held_out),
        }


def _sentences(segments: Segments, most: int) -> Arrays:
    """Number the sentences of segments, and find those that can be an A; see :class:`_Sampler`.

    ``longest`` is the most tokens that the example of each has.
    """
    firsts = np.searchsorted(segments.begins, unit_places(segments.corpus, IN_SENTENCE))
    beginnings = LengthMatching.of(segments.lengths[firsts], segments.documents[firsts])
    chosen = _usable(beginnings)
    lasts = np.append(firsts[1:], len(segments)) - 1
    one = segments.lengths[lasts[chosen]]
    other = np.minimum(limits(beginnings.lengths[chosen + 1])[1], most)
    longest = (one + 3 + other).astype(np.int32)
    found = {"firsts": firsts, "chosen": chosen, "longest": longest, **attrs.asdict(beginnings)}
    return {name: _narrow(values) for name, values in found.items()}


def _narrow(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return numbers from 0 in the fewest bytes, which are read from the disk in every batch."""
    return values.astype(np.min_scalar_type(values.max(initial=0)))


@attrs.frozen(eq=False)
class _Sampler:
    """Draws pairs of sentences.

    Attributes:
        segments: sentences, or parts of one.
        firsts: the number of the first segment of each sentence.
        chosen: the sentences that can be an A.
        beginnings: finds sentences whose first segment is of similar length.
    """

    segments: Segments
    firsts: NDArray[np.integer]
    chosen: NDArray[np.integer]
    beginnings: LengthMatching

    def __call__(self, number: int, draws: Draws) -> Example:
        sentence = int(self.chosen[number])
        label = draws.below(3, "class")
        if label == ADJACENT:
            other = sentence + 1
        elif label == SAME_DOCUMENT:
            similar = self.beginnings.in_group(sentence + 1)
            far = similar[np.abs(similar - sentence) > 1]
            if len(far) > 1 and self.beginnings.begins_group(int(far.min())):
                far = far[far != far.min()]
            other = int(far[draws.below(len(far), "same")])
        else:
            other = self.beginnings.in_another(sentence + 1, draws, but_first=True)
        one, two = self.segments[self._last(sentence)], self.segments[int(self.firsts[other])]
        tokenizer = self.segments.corpus.tokenizer
        pair = joined([(one.ids, one.flags), (two.ids, two.flags)], tokenizer.cls_id, tokenizer.sep_id)
        return {**pair, "label": label}

    def _last(self, sentence: int) -> int:
        """Return the number of the last segment of a sentence."""
        end = self.firsts[sentence + 1] if sentence + 1 < len(self.firsts) else len(self.segments)
        return int(end) - 1


def _usable(beginnings: LengthMatching) -> NDArray[np.int64]:
    """Return the sentences that can be an A."""
    lengths, documents = beginnings.lengths, beginnings.groups
    following = np.arange(1, len(lengths))
    low, high = limits(lengths[1:])
    similar, elsewhere = (each[1:] for each in beginnings.counts())
    near = np.ones(len(following), np.int64)  # the next sentence itself; then A, and the one before, where similar
    for before in (following - 1, following - 2):
        length = lengths[before]
        near += (before >= 0) & (documents[before] == documents[1:]) & (low <= length) & (length <= high)
    fits = (documents[:-1] == documents[1:]) & (similar > near) & (elsewhere > 0)
    return np.flatnonzero(fits)
