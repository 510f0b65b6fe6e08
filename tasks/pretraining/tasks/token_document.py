"""``token-document``: which words of a segment occur in other segments of its document.

Source: ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412, section 4.2.1), which defines the task. Ours are: a segment is as
many sentences as fit into an example, the first token of each word of letters has a label, and a word occurs elsewhere
if all of its tokens do, in a row, as a whole word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.baselines import token_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.flags import IN_WORD, starts
from onion.tasks.pretraining.corpus.segments import Segment, Segments
from onion.tasks.pretraining.examples import UNLABELLED, Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.sampling.words import Letters, holding
from onion.tasks.pretraining.task import PretrainingTask

REMEMBERED = 1024
"""Documents whose repeated words are kept: some 20 MB of an encyclopaedia's, more of books. Where a corpus has more
documents, each example reads its document again."""


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

        All tokens of the corpus are read once.

        Raises:
            DataError: there is none with a word of letters, or ``max_length`` leaves no room for text.
        """
        most = room(self, 2)
        segments = Segments.of(corpus, most)
        letters = Letters.of(corpus.tokenizer)

        def find() -> Arrays:
            several = np.bincount(segments.documents, minlength=1)[segments.documents] > 1
            return {"chosen": np.flatnonzero(several & holding(segments, letters.words))}

        chosen = segments.found("letters", find)["chosen"]
        if not len(chosen):
            told = f"no document of the corpus has words of letters and more than {most} tokens"
            raise DataError(f"{self.name}: {told}; this task needs longer documents, or less max_length")
        sampler = _Sampler(segments, chosen, letters, corpus.tokenizer.cls_id, corpus.tokenizer.sep_id)
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
        cls_id, sep_id: of the special tokens.
        repeated: document -> the words that occur in several of its segments, as bytes of their ids.
    """

    segments: Segments
    chosen: NDArray[np.int64]
    letters: Letters
    cls_id: int
    sep_id: int
    repeated: dict[int, frozenset[bytes]] = attrs.field(factory=dict, init=False)

    def __call__(self, number: int, draws: Draws) -> Example:
        segment = self.segments[int(self.chosen[number])]
        example = joined([(segment.ids, segment.flags)], self.cls_id, self.sep_id)
        repeated = self._repeated(segment.document)
        labels = np.full(len(segment.ids) + 2, UNLABELLED, np.int64)
        for place, word in self._words(segment):
            labels[place + 1] = word in repeated
        return {**example, "token_labels": labels}

    def _words(self, segment: Segment) -> Iterator[tuple[int, bytes]]:
        """Yield where each word of letters begins, and its ids as bytes."""
        begins = starts(segment.flags, IN_WORD)
        ends = dict(zip(begins.tolist(), [*begins[1:].tolist(), len(segment.ids)], strict=True))
        for place in self.letters.words(segment.ids, segment.flags).tolist():
            yield place, segment.ids[place : ends[place]].tobytes()

    def _repeated(self, document: int) -> frozenset[bytes]:
        """Return the words that occur in several segments of a document; it is read once while it is remembered."""
        found = self.repeated.get(document)
        if found is None:
            counts: Counter[bytes] = Counter()
            for number in self.segments.of_document(document):
                counts.update({word for _, word in self._words(self.segments[number])})
            found = frozenset(word for word, count in counts.items() if count > 1)
            if len(self.repeated) >= REMEMBERED:
                self.repeated.clear()
            self.repeated[document] = found
        return found
