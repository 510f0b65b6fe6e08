"""``discourse-relation``: with which word does a sentence go on from the one before.

Source: ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412), whose data are made as those of Discovery (Sileo et al. 2019,
arXiv 1903.11850): adjacent sentences of which the second began with a marker, which is taken away. ERNIE's markers,
code and data were never published. Ours are: the lists, that a comma behind the marker is taken away too, that the
sentences may be of two paragraphs of a document, and that there is no class for sentences without a marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.messages import listed
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.baselines import text_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.examples import Example, joined
from onion.tasks.pretraining.sampling.discourse_markers import LISTS, MARKERS
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.marked_sentences import MarkedSentences
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.validators import as_names, one_of


@attrs.frozen(kw_only=True)
class DiscourseRelation(PretrainingTask):
    """Tell the marker that a sentence has lost: ``[CLS] A [SEP] B [SEP]``, where B began with it.

    Every sentence that begins with a marker, of at least two in its document, is a B, and the sentence before it is A.
    The longest marker counts, and it must end where a word ends: a sentence that begins with "Whenever" does not begin
    with "When", nor, where the corpus knows Chinese words, one that begins with 当时 with 当. A comma behind the marker
    goes with it.

    The examples are the same in each pass, and the classes as common as in the corpus.

    A sentence may have half of ``max_length``; of a longer A the end stands, of a longer B the beginning.

    Attributes:
        language: whose list of markers is taken: ``"zh"``, 37, or ``"en"``, 29. Default ``"zh"``.
        markers: other ones instead of the list; on the command line with commas between them. Default: the list.
        max_length: most tokens of an example, special ones included. Default 128.
    """

    name: ClassVar[str] = "discourse-relation"
    task_id: ClassVar[int] = 5
    pair: ClassVar[bool] = True

    language: str = attrs.field(default="zh", validator=one_of(LISTS))
    markers: Sequence[str] = attrs.field(
        default=attrs.Factory(lambda self: LISTS.get(self.language, ()), takes_self=True),
        converter=as_names,
        validator=MARKERS,
    )

    @property
    def classes(self) -> Sequence[str]:
        """The markers."""
        return self.markers

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each sentence that begins with a marker and follows another one.

        Raises:
            DataError: there is none.
        """
        segments = Segments.of(corpus, room(self, 3) // 2, one_by_one=True)
        found = segments.found(f"markers {self.markers!r}", lambda: _marked(segments, self.markers))
        numbers, sizes, labels = found["numbers"], found["sizes"], found["labels"]
        if not len(numbers):
            raise DataError(
                f"{self.name}: no sentence of the corpus that follows another one begins with one of the markers "
                f"({listed(self.markers)}); give the language of the corpus, or markers that its texts have"
            )
        lengths = segments.lengths[numbers - 1] + segments.lengths[numbers] - sizes + 3
        fingerprint = f"{self!r} of {segments.fingerprint} by {seed}"
        return DrawnExamples(lengths, fingerprint, seed, _Sampler(segments, numbers, sizes, labels))

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest``."""
        return {"accuracy.commonest": text_baselines.commonest(train, held_out)}


def _marked(segments: Segments, markers: Sequence[str]) -> Arrays:
    """Find the sentences that have lost a marker and follow another one of their document."""
    marked = MarkedSentences.of(segments.corpus, markers)
    numbers, documents = np.searchsorted(segments.begins, marked.places), segments.documents
    follows = (numbers > 0) & (documents[numbers - 1] == documents[numbers])
    usable = follows & (segments.lengths[numbers] > marked.sizes)
    return {"numbers": numbers[usable], "sizes": marked.sizes[usable], "labels": marked.markers[usable]}


@attrs.frozen(eq=False)
class _Sampler:
    segments: Segments
    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __call__(self, number: int, _: Draws) -> Example:
        second, size = int(self.numbers[number]), int(self.sizes[number])
        one, two = self.segments[second - 1], self.segments[second]
        tokenizer = self.segments.corpus.tokenizer
        texts = [(one.ids, one.flags), (two.ids[size:], two.flags[size:])]
        return {**joined(texts, tokenizer.cls_id, tokenizer.sep_id), "label": int(self.labels[number])}
