"""``next-sentence``: whether the second text follows the first in its document.

Source: BERT (Devlin et al. 2018, arXiv 1810.04805, section 3.1 and appendix A.2). Ours is that a text of another
document is about as long as the one in whose place it stands, and no beginning of its document, which a text that
follows never is; so lengths and titles tell little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.pretraining.baselines import text_baselines
from onion.tasks.pretraining.baselines.logistic import logistic_accuracy
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.flags import IN_SENTENCE, starts
from onion.tasks.pretraining.examples import Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.halves import Halves, Text
from onion.tasks.pretraining.task import PretrainingTask

TRIED, MOST_TRIED = 4, 64
"""Segments of other documents among which the text of the most similar length is looked for, and how many more may be
tried until one has a whole sentence that fits."""


@attrs.frozen(kw_only=True)
class NextSentence(PretrainingTask):
    """Tell whether B follows A in its document: ``[CLS] A [SEP] B [SEP]``.

    As many whole sentences of a document in a row as fit are cut in two at a random sentence border, another one in
    each pass. In half of the examples the second part is replaced by sentences in a row of another document, about as
    many tokens as the second part has.

    ERNIE 1.0's gz lines hold this task too, with the same labels. ERNIE 2.0 has none; its id, 7, is ours.
    """

    name: ClassVar[str] = "next-sentence"
    task_id: ClassVar[int] = 7
    pair: ClassVar[bool] = True

    @property
    def classes(self) -> Sequence[str]:
        """``other``: B is of another document, 0; ``next``: B follows A, 1."""
        return ("other", "next")

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each segment of two sentences or more.

        Raises:
            DataError: there is none, there is no other document, or ``max_length`` leaves no room for text.
        """
        halves = Halves.of(self, corpus)
        documents = halves.segments.documents
        if documents[0] == documents[-1]:
            raise DataError(f"{self.name}: the corpus has one document only, so there is no text of another one")
        fingerprint = f"{self!r} of {halves.segments.fingerprint} by {seed}"
        sampler = _Sampler(halves, corpus.tokenizer.cls_id, corpus.tokenizer.sep_id)
        return DrawnExamples(halves.lengths, fingerprint, seed, sampler)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest``, and what counting reaches.

        That is ``accuracy.lengths``, by the tokens of B, ``accuracy.shared_tokens`` and ``accuracy.shared_bigrams``,
        each by one number, and ``accuracy.overlap``, a logistic regression on two.
        """
        (known, labels), (unknown, held_out_labels) = _overlaps(train), _overlaps(held_out)
        return {
            "accuracy.commonest": text_baselines.commonest(train, held_out),
            "accuracy.lengths": text_baselines.by_number(train, held_out, lambda example: example["types"].sum()),
            **text_baselines.overlap(train, held_out),
            "accuracy.overlap": logistic_accuracy(known, labels, unknown, held_out_labels),
        }


def _overlaps(examples: Sequence[Example]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what the texts of each example share, float64 ``[examples, 2]``, and the labels, int64 ``[examples]``."""
    return np.array([_overlap(each) for each in examples]), np.array([each["label"] for each in examples], np.int64)


def _overlap(example: Example) -> tuple[float, float]:
    """Return the share of all tokens that both texts have, and that of the bigrams."""
    one, other = map(set, text_baselines.texts_of(example))
    return len(one & other) / max(len(one | other), 1), text_baselines.shared_bigrams(example)


@attrs.frozen(eq=False)
class _Sampler:
    halves: Halves
    cls_id: int
    sep_id: int

    def __call__(self, number: int, draws: Draws) -> Example:
        first, second = self.halves.cut(number, draws)
        follows = draws.below(2, "follows")
        if not follows:
            second = self._of_another(number, len(second[0]), draws)
        return {**joined([first, second], self.cls_id, self.sep_id), "label": follows}

    def _of_another(self, number: int, length: int, draws: Draws) -> Text:
        """Return sentences in a row of another document, of at most this length and about as long.

        A text that follows is never the beginning of a document, nor of a cut sentence: these would tell that they do
        not follow, and are taken, in this order, only where there is nothing else.
        """
        segments = self.halves.segments
        own = segments.beside(int(self.halves.chosen[number]))
        places: list[int] = []
        found: list[Text] = []
        for attempt in range(MOST_TRIED):
            place = draws.below(len(segments) - len(own), f"other {attempt}")
            places.append(place + len(own) * (place >= own.start))
            found.append(self._run(places[-1], length, but_first=True))
            best = _longest(found)
            if len(found) >= TRIED and len(best[0]):
                return best
        best = _longest([self._run(place, length) for place in places])
        if len(best[0]):
            return best
        last = segments[places[-1]]
        return last.ids[:length], last.flags[:length]

    def _run(self, place: int, length: int, but_first: bool = False) -> Text:
        """Return the longest run of whole sentences of a segment; nothing if each is longer, or one is cut in it.

        Args:
            place: of the segment.
            length: most tokens.
            but_first: whether the first sentence of a document is left out.
        """
        segments = self.halves.segments
        segment = segments[place]
        if not self.halves.whole[place]:
            return segment.ids[:0], segment.flags[:0]
        borders = np.append(starts(segment.flags, IN_SENTENCE), len(segment.ids))
        if but_first and place == segments.beside(place).start:
            borders = borders[1:]
        sizes = borders[None] - borders[:, None]
        sizes[sizes > length] = 0
        begin, end = np.unravel_index(sizes.argmax(), sizes.shape)
        run = slice(borders[begin], borders[end])
        return segment.ids[run], segment.flags[run]


def _longest(found: Sequence[Text]) -> Text:
    return max(found, key=lambda text: len(text[0]))
