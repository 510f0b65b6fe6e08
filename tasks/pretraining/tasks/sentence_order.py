"""``sentence-order``: whether two parts of a text were swapped.

Source: ALBERT (Lan et al. 2019, arXiv 1909.11942, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from onion.tasks.pretraining.baselines import text_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.examples import Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.halves import Halves
from onion.tasks.pretraining.task import PretrainingTask


@attrs.frozen(kw_only=True)
class SentenceOrder(PretrainingTask):
    """Tell whether two neighbouring parts of a document are in their order: ``[CLS] A [SEP] B [SEP]``.

    As many whole sentences of a document in a row as fit are cut in two at a random sentence border, another one in
    each pass, and the parts are swapped in half of the examples.

    ERNIE has no such task; its id, 8, is ours.
    """

    name: ClassVar[str] = "sentence-order"
    task_id: ClassVar[int] = 8
    pair: ClassVar[bool] = True

    @property
    def classes(self) -> Sequence[str]:
        """``ordered``: as in the document, 0; ``swapped``, 1."""
        return ("ordered", "swapped")

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each segment of two sentences or more.

        Raises:
            DataError: there is none, or ``max_length`` leaves no room for text.
        """
        halves = Halves.of(self, corpus)
        fingerprint = f"{self!r} of {halves.segments.fingerprint} by {seed}"
        sampler = _Sampler(halves, corpus.tokenizer.cls_id, corpus.tokenizer.sep_id)
        return DrawnExamples(halves.lengths, fingerprint, seed, sampler)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest``, and ``accuracy.lengths``, by which part of the tokens is B.

        Lengths tell something: titles and headings are short, and come first.
        """
        return {
            "accuracy.commonest": text_baselines.commonest(train, held_out),
            "accuracy.lengths": text_baselines.by_number(train, held_out, lambda example: example["types"].mean()),
        }


@attrs.frozen(eq=False)
class _Sampler:
    halves: Halves
    cls_id: int
    sep_id: int

    def __call__(self, number: int, draws: Draws) -> Example:
        first, second = self.halves.cut(number, draws)
        swapped = draws.below(2, "swapped")
        parts = [second, first] if swapped else [first, second]
        return {**joined(parts, self.cls_id, self.sep_id), "label": swapped}
