"""``knowledge-masking``: the words that are hidden in a text.

Source: ERNIE 1.0 (Sun et al. 2019, arXiv 1904.09223, section 3.2) and ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412,
section 4.2.1). What is hidden is chosen by ``onion.tasks.pretraining.masking.masking``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from onion.errors import DataError
from onion.tasks.pretraining.baselines import token_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.examples import Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.task import PretrainingTask


@attrs.frozen(kw_only=True)
class KnowledgeMasking(PretrainingTask):
    """Predict hidden words, phrases and entities: ``[CLS] A [SEP]``.

    A is as many whole sentences of a document in a row as fit; each token of the corpus is in one example a pass. The
    task has no classes.
    """

    name: ClassVar[str] = "knowledge-masking"
    task_id: ClassVar[int] = 0

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each segment, the same in every pass until it is masked.

        Raises:
            DataError: the corpus is empty, or ``max_length`` leaves no room for text.
        """
        segments = Segments.of(corpus, room(self, 2))
        if not len(segments):
            raise DataError(f"{self.name}: the corpus has no text")
        fingerprint = f"{self!r} of {segments.fingerprint} by {seed}"
        sampler = _Sampler(segments, corpus.tokenizer.cls_id, corpus.tokenizer.sep_id)
        return DrawnExamples(segments.lengths + 2, fingerprint, seed, sampler)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return loss and perplexity by the frequencies of tokens, and the accuracy of always saying the commonest."""
        return token_baselines.word_frequencies(train, held_out)


@attrs.frozen(eq=False)
class _Sampler:
    segments: Segments
    cls_id: int
    sep_id: int

    def __call__(self, number: int, draws: Draws) -> Example:
        segment = self.segments[number]
        return joined([(segment.ids, segment.flags)], self.cls_id, self.sep_id)
