"""``capitalisation``: which words of a lower-cased text began with a capital.

Source: ERNIE 2.0 (Sun et al. 2019, arXiv 1907.12412, section 4.2.1), which defines the task. Ours is which tokens have
labels: the first one of each word of letters, whether it is masked or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.baselines import token_baselines
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.flags import CAPITAL, IN_SENTENCE, Flags
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.examples import UNLABELLED, Example, joined
from onion.tasks.pretraining.sampling.drawn_examples import DrawnExamples
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.pretraining.sampling.room import room
from onion.tasks.pretraining.sampling.words import Ids, Letters, Places, holding
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.validators import SWITCH

ALPHABET = "The Quick Brown Fox Jumps Over A Lazy Dog"


@attrs.frozen(kw_only=True)
class Capitalisation(PretrainingTask):
    """Tell for each word whether it began with a capital in the raw text: ``[CLS] A [SEP]``.

    A is as many whole sentences of a document in a row as fit. The first token of each word of letters has a label, if
    its script has capitals.

    Attributes:
        sentence_starts: whether the first word of a sentence has a label, which is nearly always a capital. Default
            True; a test without them tells what is known beyond full stops.
        max_length: most tokens of an example, special ones included. Default 128.
        masks: whether words are masked too. Default False.
    """

    name: ClassVar[str] = "capitalisation"
    task_id: ClassVar[int] = 1
    each_token: ClassVar[bool] = True

    sentence_starts: bool = attrs.field(default=True, validator=SWITCH)

    @property
    def classes(self) -> Sequence[str]:
        """``lower``, 0; ``capital``, 1."""
        return ("lower", "capital")

    def samples(self, corpus: Corpus, seed: int) -> DrawnExamples:
        """Return an example for each segment with a word that has a label, the same in every pass.

        All tokens of the corpus are read once.

        Raises:
            DataError: the vocabulary tells capitals from small letters, so the ids give the answer away; the corpus has
                no word with a label, or no capital; or ``max_length`` leaves no room for text.
        """
        _refuse_cased(self, corpus.tokenizer)
        segments = Segments.of(corpus, room(self, 2))
        finder = _Finder(Letters.of(corpus.tokenizer), self.sentence_starts)
        found = segments.found(f"capitalisation {self.sentence_starts}", lambda: _with_labels(segments, finder))
        chosen = found["chosen"]
        if not len(chosen) or not found["capitals"].all():
            told = "none of the words of the corpus is known to begin with a capital"
            raise DataError(f"{self.name}: {told}; this task needs texts in a script with capitals, such as English")
        tokenizer = corpus.tokenizer
        sampler = _Sampler(segments, chosen, finder, tokenizer.cls_id, tokenizer.sep_id)
        fingerprint = f"{self!r} of {segments.fingerprint} by {seed}"
        return DrawnExamples(segments.lengths[chosen] + 2, fingerprint, seed, sampler)

    def baseline(self, train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
        """Return ``accuracy.commonest``, and ``accuracy.word``: the commonest label of each word's first token."""
        words, labels = token_baselines.labelled(train)
        held_out_words, held_out_labels = token_baselines.labelled(held_out)
        return {
            "accuracy.commonest": token_baselines.commonest(labels, held_out_labels),
            "accuracy.word": token_baselines.by_key(words.tolist(), labels, held_out_words.tolist(), held_out_labels),
        }


def _refuse_cased(task: PretrainingTask, tokenizer: Tokenizer) -> None:
    cased, uncased = tokenizer([ALPHABET, ALPHABET.lower()])
    if cased.ids.tolist() != uncased.ids.tolist():
        told = "the vocabulary tells capitals from small letters, so that the ids give the answer away"
        raise DataError(f"{task.name}: {told}; build the corpus with an uncased tokenizer")


def _with_labels(segments: Segments, finder: _Finder) -> Arrays:
    """Find the segments with a label, and whether the corpus has a capital."""
    capitals = any((shard.flags & CAPITAL).any() for shard in segments.corpus.shards)
    return {"chosen": np.flatnonzero(holding(segments, finder)), "capitals": np.array([capitals])}


@attrs.frozen(eq=False)
class _Finder:
    """Finds the tokens that have labels.

    Attributes:
        letters: of the vocabulary.
        sentence_starts: whether the first word of a sentence has a label.
    """

    letters: Letters
    sentence_starts: bool

    def __call__(self, ids: Ids, flags: Flags) -> Places:
        places = self.letters.cased_words(ids, flags)
        return places if self.sentence_starts else places[~_first_in_sentence(flags, places)]


def _first_in_sentence(flags: Flags, places: Places) -> NDArray[np.bool_]:
    """Return which of some words are the first ones of their sentences; none if the sentence begins elsewhere."""
    sentences = np.cumsum((flags & IN_SENTENCE) == 0)[places]
    first: NDArray[np.bool_] = np.diff(sentences, prepend=0) > 0
    return first


@attrs.frozen(eq=False)
class _Sampler:
    segments: Segments
    chosen: NDArray[np.int64]
    finder: _Finder
    cls_id: int
    sep_id: int

    def __call__(self, number: int, draws: Draws) -> Example:
        segment = self.segments[int(self.chosen[number])]
        example = joined([(segment.ids, segment.flags)], self.cls_id, self.sep_id)
        labels = np.full(len(segment.ids) + 2, UNLABELLED, np.int64)
        places = self.finder(segment.ids, segment.flags)
        labels[places + 1] = (segment.flags[places] & CAPITAL) != 0
        return {**example, "token_labels": labels}
