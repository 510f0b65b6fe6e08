"""``masked-lm``: masked language modelling (BERT, Devlin et al. 2018, section 3.1).

File: plain text, ``.txt``, one paragraph per line, with blank lines between documents; or ``text_a``, and ``text_b`` if
the rows are pairs. There are no labels, since the text itself is the target.
Prediction: ``masks``, a list with ``words``, ``word_ids`` and ``probabilities`` for each ``[MASK]`` of the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from onion import RunnerItem
from onion.data.batching import pad
from onion.data.files import FORMATS, iter_lines
from onion.errors import DataError
from onion.messages import shown
from onion.models.tokenizer import Encoding, Tokenizer
from onion.models.weights import Weights
from onion.tasks.batches import batch_of
from onion.tasks.data.features.examples import Example
from onion.tasks.data.rows import Row
from onion.tasks.data.texts import PAIR, TEXT, TextTask, checked_texts, note_cut
from onion.tasks.masked_lm.guessing import guesses
from onion.tasks.masked_lm.masking import Masker, MaskFiller, SteadyMasker, special_ids
from onion.tasks.masked_lm.words import NO_SEGMENTER, identity_of, numbered, words_of
from onion.tasks.metrics.perplexity import PerplexityMetric
from onion.tasks.task import AFTER_TRAINING, MASKED_TOKENS, NOT_OF_FEATURES, Task
from onion.tasks.validators import NATURAL, SHARE, SWITCH, as_float
from onion.tasks.validators import TEXT as A_TEXT

if TYPE_CHECKING:
    from paddle import nn

    from onion.tasks.networks.masked_language_model import MaskedLanguageModel
    from onion.tasks.task import Decode

PLAIN_TEXT = ".txt"


def _with_whole_words(task: MaskedLM, field: Any, value: str) -> None:
    if value != NO_SEGMENTER and not task.whole_words:
        raise DataError(f"segmenter {shown(value)} needs whole_words=true; without it, each token is masked on its own")


@attrs.frozen(kw_only=True)
class MaskedLM(TextTask):
    """Masked words of a text, or of a pair of texts.

    A text that is too long becomes several consecutive examples, so nothing is lost; of a pair, the longer text is
    truncated.

    Attributes:
        masked_share: of the tokens, or words; see ``onion.tasks.masked_lm.masking.Masker``.
        whole_words: mask all tokens of a word together.
        segmenter: finds words beyond the tokenizer's, which splits Chinese into characters, each a word: ``"jieba"``
            (the extra ``chinese``), ``"lac"`` for named entities (the extra ``entities``), a file with a word a line,
            or several: ``"jieba+lac"``. It needs ``whole_words``. Default ``"none"``.
        guesses: the number of words predicted for each ``[MASK]``.
    """

    name = "masked-lm"
    features_version = 1
    head_over = MASKED_TOKENS
    monitor = "accuracy"

    masked_share: float = attrs.field(default=0.15, converter=as_float, validator=SHARE, metadata=NOT_OF_FEATURES)
    whole_words: bool = attrs.field(default=False, validator=SWITCH, metadata=NOT_OF_FEATURES)
    segmenter: str = attrs.field(default=NO_SEGMENTER, validator=[A_TEXT, _with_whole_words])
    guesses: int = attrs.field(default=5, validator=NATURAL, metadata=AFTER_TRAINING)

    def rows(self, path: str | Path, labelled: bool) -> Iterator[Row]:
        """Yield the paragraphs of a plain text, or the rows of a file; see ``Task.rows``."""
        suffix = Path(path).suffix.lower()
        if suffix == PLAIN_TEXT:
            return checked_texts(paragraphs(Path(path)), self.pairs)
        if suffix not in FORMATS:
            known = f"use plain text {PLAIN_TEXT}, or a table {', '.join(FORMATS)}"
            raise DataError(f"{path}: cannot tell the format by the ending; {known}")
        return super().rows(path, labelled=False)

    def features(self, rows: Sequence[Row], tokenizer: Tokenizer, labelled: bool, notes: Counter[str]) -> list[Example]:
        """Return ``ids``, ``types`` and ``words``, int64 ``[length]``; see ``Task.features``.

        ``words`` is the number of a token's word, -1 for tokens that must not be masked. Labelled rows without a word
        to mask are left out.
        """
        special = special_ids(tokenizer)
        examples: list[Example] = []
        every = self._parts(rows, tokenizer, notes)
        for row, (parts, words) in enumerate(zip(every, self._words(rows, every, labelled), strict=True)):
            for part, word in zip(parts, words, strict=True):
                masked = np.where(np.isin(part.ids, special), -1, word)
                examples.append({"row": row, "ids": part.ids, "types": part.types, "words": masked})
        if not labelled:
            return examples
        targets = [example for example in examples if (example["words"] >= 0).any()]
        if len(targets) < len(examples):
            notes["texts without a word to mask, left out"] += len(examples) - len(targets)
        return targets

    def features_record(self) -> dict[str, Any]:
        """Return the part of the record that affects features, with the segmenter's version and dictionary."""
        return {**super().features_record(), "segmenter": identity_of(self.segmenter)}

    def count(self, rows: Iterable[Row], tokenizer: Tokenizer) -> int:
        """Count the examples by making them, since a text may be several or none; see ``Task.count``."""
        return Task.count(self, rows, tokenizer)

    def _parts(self, rows: Sequence[Row], tokenizer: Tokenizer, notes: Counter[str]) -> list[list[Encoding]]:
        """Return the encodings of each row: one or more of a text, one of a pair."""
        texts = [row.cells[TEXT] for row in rows]
        if not self.pairs:
            return tokenizer.windows(texts, max_length=self.max_length, stride=self.max_length)
        seconds = [row.cells[PAIR] for row in rows]
        encodings = tokenizer(texts, seconds, max_length=self.max_length, offsets=True)  # includes the words
        note_cut(notes, encodings, self.max_length)
        return [[encoding] for encoding in encodings]

    def _words(
        self, rows: Sequence[Row], parts: Sequence[Sequence[Encoding]], labelled: bool
    ) -> Iterator[list[np.ndarray]]:
        """Yield the numbers of the words of each row's encodings; only those to be masked need the segmenter."""
        if self.segmenter == NO_SEGMENTER or not labelled:
            yield from ([part.alignment[1] for part in encodings] for encodings in parts)
            return
        columns = [TEXT, PAIR] if self.pairs else [TEXT]
        texts = [[row.cells[column] for row in rows] for column in columns]
        found = [words_of(self.segmenter, column) for column in texts]
        for encodings, each, words in zip(parts, zip(*texts, strict=True), zip(*found, strict=True), strict=True):
            lengths = [len(text) for text in each]
            yield [numbered(part, lengths, words) for part in encodings]

    def targets(self, row: Row) -> dict[str, Any]:
        """Return nothing, since the text is the target."""
        return {}

    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch (``onion.tasks.batches.batch_of``) with ``words``, int64 ``[batch, length]``, padded with -1."""
        return {**batch_of(examples, pad_id), "words": pad([example["words"] for example in examples], -1, np.int64)}

    def network(self, encoder: nn.Layer) -> MaskedLanguageModel:
        """Put a ``MaskedLanguageModel`` over an encoder."""
        from onion.tasks.networks.masked_language_model import MaskedLanguageModel

        return MaskedLanguageModel(encoder, self.guesses)

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Give the guesses for the masked words; see ``Task.decoding``."""
        return partial(guesses, most=self.guesses)

    def fill(self, network: nn.Layer, weights: Weights) -> None:
        """Load the pretrained head, if the encoder's file has it."""
        network.cls.fill(weights)

    def train_items(self, tokenizer: Tokenizer, seed: int) -> list[RunnerItem]:
        """Draw other masks in every pass."""
        return [Masker(tokenizer, seed, self.masked_share, self.whole_words)]

    def eval_items(self, tokenizer: Tokenizer, seed: int) -> list[RunnerItem]:
        """Draw the same masks in every test."""
        return [SteadyMasker(tokenizer, seed, self.masked_share, self.whole_words)]

    def predict_items(self, tokenizer: Tokenizer) -> list[RunnerItem]:
        """Fill the ``[MASK]`` of the texts."""
        return [MaskFiller(tokenizer)]

    def metric(self, path: str | Path) -> PerplexityMetric:
        """Measure perplexity and accuracy over the masked words."""
        return PerplexityMetric()

    def predictions(
        self, rows: Sequence[Row], examples: Sequence[Example], decoded: Sequence[list[dict[str, Any]]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the guesses for every ``[MASK]`` of a row, in the order of the text."""
        masks: list[list[dict[str, Any]]] = [[] for _ in rows]
        for example, found in zip(examples, decoded, strict=True):
            masks[example["row"]] += found
        return ({"masks": each} for each in masks)

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the accuracy of always guessing the most frequent word."""
        counts = np.bincount(np.concatenate([example["ids"][example["words"] >= 0] for example in examples]))
        return {"commonest_word_accuracy": float(counts.max() / counts.sum())}


def paragraphs(path: Path) -> Iterator[Row]:
    """Yield the lines of a plain text that are not blank, as rows with ``text_a``, one in memory at a time.

    Raises:
        DataError: the file cannot be read, is not UTF-8, or is blank; file and line are named.
    """
    empty = True
    for number, line in iter_lines(path):
        if line.strip():
            empty = False
            yield Row(path, number, {TEXT: line})
    if empty:
        raise DataError(f"{path}: there is no text in the file; it needs at least one line that is not blank")
