"""``ir-relevance``: a proxy for search logs, made of a file of questions.

Source: ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412) learns from the logs of Baidu's search engine, of a query and a
title: 0, users clicked it; 1, it was shown and not clicked; 2, it was drawn at random. These logs were never published.
This proxy is ours and has none of them: questions stand for queries, and passages of an encyclopaedia for titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.pretraining.baselines import text_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.examples import Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.length_matching import LengthMatching, limits
from onion.tasks.pretraining.sampling.passages import Passages
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.validators import TEXT

ANSWER, SAME_ARTICLE, OTHER_ARTICLE = range(3)


@attrs.frozen(kw_only=True)
class IRRelevance(PretrainingTask):
    """Tell how far a passage is from a question: ``[CLS] question [SEP] passage [SEP]``.

    A passage is a paragraph or, of a longer one, as many of its sentences in a row as fit. So articles of a single long
    paragraph, as CMRC 2018's, have several. Each question is an example for which all three kinds of passage are there:
    the one in which its answer begins; another one of the same article; and one of another article. The latter two must
    be as long as the first, give or take an eighth or one token, so that no length tells the class. In each pass the
    class is drawn, each with a probability of 1/3, and then the passage. So questions about articles of one passage are
    left out, as are those that cannot be answered, and those about long paragraphs whose answer is not at its place.

    A question may have a quarter of ``max_length``; the beginning of a longer one stands.

    Attributes:
        questions: a file in SQuAD's format (SQuAD, CMRC 2018, DRCD). Of the corpus this task takes the tokenizer
            only.
        held_out: another such file, to test on. Default: the task is not tested.
        max_length: most tokens of an example, special ones included. Default 128.
    """

    name: ClassVar[str] = "ir-relevance"
    task_id: ClassVar[int] = 6
    pair: ClassVar[bool] = True
    files: ClassVar[tuple[str, ...]] = ("questions", "held_out")

    questions: str = attrs.field(validator=TEXT)
    held_out: str | None = attrs.field(default=None, validator=attrs.validators.optional(TEXT))

    @property
    def classes(self) -> Sequence[str]:
        """``answer``, ``same article``, ``other article``."""
        return ("answer", "same article", "other article")

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each question that can have a passage of each class.

        Raises:
            DataError: there is none, or the file is invalid.
        """
        longest = self.max_length // 4
        most = room(self, 3) - longest
        passages = Passages.read(self.questions, corpus.tokenizer, most)
        similar = LengthMatching.of(passages.texts.lengths, passages.articles)
        own, elsewhere = similar.counts()
        usable = (passages.answers >= 0) & (own > 1)[passages.answers] & (elsewhere > 0)[passages.answers]
        chosen = np.flatnonzero(usable)
        if not len(chosen):
            raise DataError(
                f"{self.questions}: no question can have all of the passage with its answer, another one of the same "
                f"article and one of another article, of similar lengths; {self.name} needs two articles or more, of "
                "several paragraphs or long ones"
            )
        asked = np.array([min(len(ids), longest) for ids, _ in passages.questions])[chosen]
        lengths = asked + 3 + np.minimum(limits(passages.texts.lengths[passages.answers[chosen]])[1], most)
        fingerprint = (
            f"{self.name} {self.max_length} of {passages.texts.fingerprint} for {corpus.fingerprint} by {seed}"
        )
        return DrawnExamples(lengths, fingerprint, seed, _Sampler(passages, similar, chosen, longest))

    def held_out_samples(self, held_out: Corpus | None, corpus: Corpus, seed: int) -> DrawnExamples | None:
        """Return the examples of the questions to test on, if there are any; they need no corpus to test on.

        Raises:
            DataError: these are the questions that are learned from; or see :meth:`samples`.
        """
        if self.held_out is None:
            return None
        if digest_of_file(self.held_out) == digest_of_file(self.questions):
            raise DataError(f"{self.held_out}: has the questions that are learned from; test on others")
        return attrs.evolve(self, questions=self.held_out).samples(corpus if held_out is None else held_out, seed)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest``, ``accuracy.shared_tokens`` and ``accuracy.shared_bigrams``."""
        return {
            "accuracy.commonest": text_baselines.commonest(train, held_out),
            **text_baselines.overlap(train, held_out),
        }


@attrs.frozen(eq=False)
class _Sampler:
    passages: Passages
    similar: LengthMatching
    chosen: NDArray[np.int64]
    longest: int

    def __call__(self, number: int, draws: Draws) -> Example:
        question = int(self.chosen[number])
        passage = int(self.passages.answers[question])
        label = draws.below(3, "class")
        if label == SAME_ARTICLE:
            others = self.similar.in_group(passage)
            others = others[others != passage]
            passage = int(others[draws.below(len(others), "same")])
        elif label == OTHER_ARTICLE:
            passage = self.similar.in_another(passage, draws)
        ids, flags = self.passages.questions[question]
        text = self.passages.texts[passage]
        pair = [(ids[: self.longest], flags[: self.longest]), (text.ids, text.flags)]
        tokenizer = self.passages.texts.corpus.tokenizer
        return {**joined(pair, tokenizer.cls_id, tokenizer.sep_id), "label": label}
