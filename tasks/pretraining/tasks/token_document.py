"""``token-document``: which words of a segment occur in other segments of its document.

Source: ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412, section 4.2.1), which defines the task. Ours are: a segment is as
many sentences as fit into an example, the first token of each word of letters has a label, and a word occurs elsewhere
if all of its tokens do, in a row, as a whole word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.baselines import token_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.examples import UNLABELLED, Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.repeated_words import bits_of, repeated_words
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.sampling.words import Letters, holding
from onion.tasks.pretraining.task import PretrainingTask


@attrs.frozen(kw_only=True)
class TokenDocument(PretrainingTask):
    """Tell for each word whether it occurs in another segment of its document: ``[CLS] A [SEP]``.

    A is as many whole sentences of a document in a row as fit; documents of one segment are left out. The first token
    of each word of letters has a label.

    Attributes:
        max_length: most tokens of an example, special ones included, and so the length of segments. Default 128.
        masks: whether words are masked too. Default False.
    """

    name: ClassVar[str] = "token-document"
    task_id: ClassVar[int] = 2
    each_token: ClassVar[bool] = True

    @property
    def classes(self) -> Sequence[str]:
        """``only here``, 0; ``elsewhere``, in another segment too, 1."""
        return ("only here", "elsewhere")

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each segment that is not the only one of its document, the same in every pass.

        All tokens of the corpus are read twice; of a large one the labels are kept in the cache, a bit for each token.

        Raises:
            DataError: there is none with a word of letters, or ``max_length`` leaves no room for text.
        """
        most = room(self, 2)
        segments = Segments.of(corpus, most)
        letters = Letters.of(corpus.tokenizer)

        def find() -> Arrays:
            several = np.bincount(segments.documents, minlength=1)[segments.documents] > 1
            chosen = np.flatnonzero(several & holding(segments, letters.words))
            return {"chosen": chosen, "repeated": repeated_words(segments, letters)}

        found = segments.found("letters and repeated words", find)
        chosen = found["chosen"]
        if not len(chosen):
            told = f"no document of the corpus has words of letters and more than {most} tokens"
            raise DataError(f"{self.name}: {told}; this task needs longer documents, or less max_length")
        sampler = _Sampler(
            segments, chosen, letters, found["repeated"], corpus.tokenizer.cls_id, corpus.tokenizer.sep_id
        )
        fingerprint = f"{self!r} of {segments.fingerprint} by {seed}"
        return DrawnExamples(segments.lengths[chosen] + 2, fingerprint, seed, sampler)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest``, and ``accuracy.frequency``: of "words that are frequent in the corpus"."""
        words, labels = token_baselines.labelled(train)
        held_out_words, held_out_labels = token_baselines.labelled(held_out)
        counts = np.bincount(words, minlength=held_out_words.max(initial=0) + 1)
        return {
            "accuracy.commonest": token_baselines.commonest(labels, held_out_labels),
            "accuracy.frequency": token_baselines.by_threshold(
                counts[words], labels, counts[held_out_words], held_out_labels
            ),
        }


@attrs.frozen(eq=False)
class _Sampler:
    """Makes examples.

    Attributes:
        segments: all.
        chosen: the numbers of those that are examples.
        letters: of the vocabulary.
        repeated: see :func:`onion.tasks.pretraining.sampling.repeated_words.repeated_words`.
        cls_id, sep_id: of the special tokens.
    """

    segments: Segments
    chosen: NDArray[np.int64]
    letters: Letters
    repeated: NDArray[np.uint8]
    cls_id: int
    sep_id: int

    def __call__(self, number: int, draws: Draws) -> Example:
        segment = self.segments[int(self.chosen[number])]
        example = joined([(segment.ids, segment.flags)], self.cls_id, self.sep_id)
        words = self.letters.words(segment.ids, segment.flags)
        bits = bits_of(self.repeated, int(self.segments.begins[segment.number]), len(segment.ids))
        labels = np.full(len(segment.ids) + 2, UNLABELLED, np.int64)
        labels[words + 1] = bits[words]
        return {**example, "token_labels": labels}
