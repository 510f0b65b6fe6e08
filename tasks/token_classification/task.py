"""``token-classification``: a tag for every word of a text, such as names of persons and places.

File: a token and its tag a line, sentences apart by blank lines (.conll, .bio, .iob, .iob2); or ``text_a`` and
``label``, the words and their tags, joined by U+0002 or, in .jsonl, lists.
Prediction: ``tokens``, the words; ``tags``, one for each, and their ``probabilities``; ``spans``, the chunks of the
tags, with ``type``, ``begin``, ``end`` and ``text``, which is ``text[begin:end]`` in code points.

Predictions also read plain texts, without U+0002. They are split like the training file: into characters except
whitespace, or into words at whitespace, and if the training file has punctuation as words, "Berlin." into "Berlin" and
"."; offsets count in the text as it was given. If words are given, offsets count in the joined words: with nothing
between them if the training file has characters, otherwise with a space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs.validators import optional

from onion.errors import DataError
from onion.messages import shown
from onion.models.tokenizer import Tokenizer
from onion.tasks import validators
from onion.tasks.batches import mask_of
from onion.tasks.data.features.examples import Example
from onion.tasks.data.labels import Labels, as_labels
from onion.tasks.data.rows import Row, file_rows, line_rows
from onion.tasks.data.texts import TEXT
from onion.tasks.metrics.chunk_f1 import IGNORED, OUTSIDE, ChunkMetric, TagScheme
from onion.tasks.reports.chunks import ChunkedText, chunks_report
from onion.tasks.reports.report import Report
from onion.tasks.task import AFTER_TRAINING, NOT_OF_FEATURES, TOKEN_VECTORS, Task
from onion.tasks.token_classification.batches import tagging_batch
from onion.tasks.token_classification.decoding import independent_tags, joint_tags
from onion.tasks.token_classification.tagged_text import (
    LABEL_MAP,
    TAGS,
    TaggedText,
    is_punctuation,
    labelled_text,
    read_label_map,
    unlabelled_text,
)
from onion.tasks.token_classification.tags import Tags
from onion.tasks.token_classification.word_windows import WordWindow, word_windows
from onion.tasks.validators import BELOW_ONE, NATURAL, SWITCH, as_float, one_of

if TYPE_CHECKING:
    from paddle import nn

    from onion.tasks.task import Decode
    from onion.tasks.token_classification.tagger import Tagger

SOFTMAX, CRF = "softmax", "crf"
MOSTLY = 0.9
"""The share of words of one character in a file of characters; the others are, for example, numbers."""


@attrs.frozen(kw_only=True)
class TokenClassification(Task):
    """Tagging of words.

    A text of more than ``max_length`` tokens is read through windows, in training as in prediction; each word belongs
    to the window in which it has most context on both sides.

    Attributes:
        decoder: ``"softmax"``, each word independently; ``"crf"``, all words of a window jointly.
        stride: tokens between the starts of consecutive windows. Default: half of ``max_length``.
        characters: whether plain texts are split into characters. Default: whether nine in ten words of the training
            file are single characters.
        punctuation: whether punctuation at the ends of words is split off in plain texts that are split into words.
            Default: whether some words of the training file are nothing but punctuation.
        label_map: a JSON file, tag -> number. Default: ``label_map.json`` beside the training file or, if there is
            none, the tags of the training file in alphabetical order, O first.
        labels: all tags, in the order of the logits. Default: those of the label map or of the training file.
        dropout: of the token vectors. Default: the encoder's.
    """

    name = "token-classification"
    features_version = 1
    head_over = TOKEN_VECTORS
    monitor = "f1"

    decoder: str = attrs.field(default=SOFTMAX, validator=one_of((SOFTMAX, CRF)), metadata=NOT_OF_FEATURES)
    stride: int | None = attrs.field(default=None, validator=optional(NATURAL))
    characters: bool | None = attrs.field(default=None, validator=optional(SWITCH))
    punctuation: bool | None = attrs.field(default=None, validator=optional(SWITCH), metadata=AFTER_TRAINING)
    label_map: str | None = attrs.field(default=None, validator=optional(validators.TEXT))
    labels: Labels = attrs.field(default=Labels(()), converter=as_labels)
    dropout: float | None = attrs.field(
        default=None, converter=as_float, validator=optional(BELOW_ONE), metadata=NOT_OF_FEATURES
    )

    # -- data ---------------------------------------------------------------------------------------------------------

    def rows(self, path: str | Path, labelled: bool) -> Iterator[TaggedText]:
        """Yield the texts of a file; see ``Task.rows``."""
        if labelled:
            return (labelled_text(row, bool(self.characters)) for row in file_rows(path, [TEXT, TAGS]))
        return self._unlabelled(file_rows(path, [TEXT]))

    def line_rows(self, lines: Iterable[str]) -> Iterator[TaggedText]:
        """Yield a text for each line: a plain text, words joined by U+0002, or a JSON object."""
        return self._unlabelled(line_rows(lines, [TEXT]))

    def text_rows(self, texts: Sequence[str]) -> Iterator[TaggedText]:
        """Yield a row for each text; see ``Task.text_rows``."""
        return self._unlabelled(Row(Path("--text"), number, {TEXT: text}) for number, text in enumerate(texts, start=1))

    def _unlabelled(self, rows: Iterable[Row]) -> Iterator[TaggedText]:
        return (unlabelled_text(row, bool(self.characters), bool(self.punctuation)) for row in rows)

    def fitted(self, path: str | Path) -> TokenClassification:
        """Return the task with the tags, and how plain texts are split."""
        tags: set[str] = set()
        words = characters = 0
        apart = False
        for text in self.rows(path, labelled=True):
            tags.update(text.tags)
            words += len(text.places)
            characters += sum(end - begin == 1 for begin, end in text.places)
            apart = apart or any(map(is_punctuation, text.words))
        if len(tags) < 2:
            raise DataError(f"{path}: all words have the tag {shown(min(tags))}; there is nothing to learn.")
        cut = characters >= MOSTLY * words if self.characters is None else self.characters
        marks = apart if self.punctuation is None else self.punctuation
        return attrs.evolve(self, labels=self._labels(path, tags), label_map=None, characters=cut, punctuation=marks)

    def extra_fit_files(self, path: str | Path) -> list[Path]:
        """Return the label map, if there is one and the labels are not given."""
        found = Path(self.label_map or Path(path).with_name(LABEL_MAP))
        return [found] if not self.labels and (self.label_map is not None or found.is_file()) else []

    def _labels(self, path: str | Path, tags: Iterable[str]) -> Labels:
        maps = [read_label_map(found) for found in self.extra_fit_files(path)]
        alphabetical = sorted(tags, key=lambda tag: (tag != OUTSIDE, tag))
        return next(iter(maps), self.labels or Labels(alphabetical))

    def features(
        self, rows: Sequence[TaggedText], tokenizer: Tokenizer, labelled: bool, notes: Counter[str]
    ) -> list[Example]:
        """Return the windows of each text; see ``Task.features``.

        Returns:
            Examples with ``ids``, ``types``, ``row``; ``firsts``, the position of each word in ``ids``; ``word``, the
            index of the first of these words in the text; ``own``, begin and end of the words that belong to this
            example, counted among its words; and ``tags`` of its words, IGNORED for words of other examples.
        """
        stride = self.stride or max(1, self.max_length // 2)
        windows = word_windows(tokenizer, [text.words for text in rows], self.max_length, stride)
        long = sum(first.encoding.truncated for first, *_ in windows)
        if long:
            notes[f"texts longer than {self.max_length} tokens, read through windows"] += long
        numbers = self.labels.numbers()
        examples = []
        for row, (text, of_text) in enumerate(zip(rows, windows, strict=True)):
            tags = self._numbered(text, numbers) if labelled else None
            examples += [_example(row, window, tags) for window in of_text]
        return examples

    def _numbered(self, text: TaggedText, numbers: dict[str, int]) -> np.ndarray:
        try:
            return np.array([numbers[tag] for tag in text.tags])
        except KeyError:
            place = next(place for place, tag in enumerate(text.tags) if tag not in numbers)
            odd = f"the tag {shown(text.tags[place])} of word {place + 1}, {shown(text.words[place])}"
            raise text.row.error(f"{odd}, is unknown; the training file has {self.labels.told()}") from None

    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch of examples; see :func:`tagging_batch`."""
        return tagging_batch(examples, pad_id)

    # -- learning and results -----------------------------------------------------------------------------------------

    def network(self, encoder: nn.Layer) -> Tagger:
        """Put a ``Tagger`` or a ``CrfTagger`` over an encoder."""
        from onion.tasks.token_classification.tagger import TAGGERS

        return TAGGERS[self.decoder](encoder, len(self.labels), self.dropout)

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Give the tags of each example's own words; see ``Task.decoding``."""
        if self.decoder == SOFTMAX:
            return independent_tags
        transitions, start, end = (weights[path] for path in self.decoding_weights)
        return partial(joint_tags, transitions=transitions, start=start, end=end)

    @property
    def decoding_weights(self) -> Sequence[str]:  # type: ignore[override]
        """Those of the CRF, if there is one; see ``Task``."""
        return () if self.decoder == SOFTMAX else ("crf.transitions", "crf.start", "crf.end")

    def outputs_of(self, logits: np.ndarray, batch: Mapping[str, Any]) -> np.ndarray:
        """Return the logits of the first token of each word, ``[words, tags]``; see ``Task.outputs_of``."""
        firsts: np.ndarray = logits[mask_of(dict(batch))][batch["firsts"]]
        return firsts

    def metric(self, path: str | Path) -> ChunkMetric:
        """Measure precision, recall and F1 of chunks, and the accuracy of tags."""
        return ChunkMetric(self.labels)

    def predictions(
        self, rows: Sequence[TaggedText], examples: Sequence[Example], decoded: Sequence[Tags]
    ) -> Iterator[dict[str, Any]]:
        """Yield words, tags with their probabilities, and spans."""
        scheme = TagScheme(self.labels)
        of_rows: list[list[Tags]] = [[] for _ in rows]
        for example, tags in zip(examples, decoded, strict=True):
            of_rows[example["row"]].append(tags)
        for text, parts in zip(rows, of_rows, strict=True):
            words = len(text.places)  # a text without words has a tag of a stand-in
            numbers = np.concatenate([part.numbers for part in parts])[:words]
            chances = np.concatenate([part.probabilities for part in parts])[:words].tolist()
            yield {
                "tokens": text.words,
                "tags": [self.labels.names[number] for number in numbers],
                "probabilities": [round(chance, 6) for chance in chances],
                "spans": list(_spans(text, numbers, scheme)),
            }

    def report(self, rows: Sequence[TaggedText], predicted: Iterable[Mapping[str, Any]]) -> Report:
        """Return the figures of each type of chunk, their confusions, and the errors; see ``Task.report``."""
        scheme, numbers = TagScheme(self.labels), self.labels.numbers()
        true = (list(_spans(text, self._numbered(text, numbers), scheme)) for text in rows)
        texts = [
            ChunkedText(text.row, text.text, text.places, each["probabilities"], spans, each["spans"])
            for text, each, spans in zip(rows, predicted, true, strict=True)
        ]
        return chunks_report(scheme.kinds, texts)

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the accuracy of always predicting the most frequent tag."""
        tags = np.concatenate([example["tags"] for example in examples])
        own = tags[tags != IGNORED]
        return {"majority_accuracy": float(np.bincount(own).max() / len(own))}


def _example(row: int, window: WordWindow, tags: np.ndarray | None) -> Example:
    """Return the example of a window; ``tags`` are those of the whole text."""
    example = {
        "row": row,
        "ids": window.encoding.ids,
        "types": window.encoding.types,
        "firsts": window.firsts,
        "word": window.word,
        "own": np.array(window.own),
    }
    if tags is not None:
        begin, end = window.own
        own = np.full(len(window.firsts), IGNORED)
        own[begin:end] = tags[window.word + begin : window.word + end]
        example["tags"] = own
    return example


def _spans(text: TaggedText, tags: np.ndarray, scheme: TagScheme) -> Iterator[dict[str, Any]]:
    chunks = scheme.chunks(tags, np.array([0])[: len(tags)])
    for first, last, kind in zip(chunks.begins, chunks.lasts, chunks.kinds, strict=True):
        begin, end = text.places[first][0], text.places[last][1]
        yield {"type": scheme.kinds[kind], "begin": begin, "end": end, "text": text.text[begin:end]}
