"""``matching``: how well a second text matches a first one, such as an answer a question.

File, pointwise: ``text_a``, ``text_b``, ``label`` (two values; the second in order, such as ``1``, means a match,
unless the setting ``fits`` names the other), and ``qid`` if several rows belong to one question.
File, pairwise: ``text_a``, ``text_b``, which matches, and ``text_b_neg``, which matches less.
Prediction: ``score``, from 0 to 1, of ``text_a`` and ``text_b``; trained pointwise, also ``label``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs.validators import optional

from onion.errors import DataError
from onion.items.evaluator import Metric
from onion.messages import shown
from onion.models.tokenizer import Tokenizer
from onion.tasks.batches import batch_of
from onion.tasks.data.features.examples import Example, Examples
from onion.tasks.data.labels import Labels, as_labels
from onion.tasks.data.rows import Row, file_rows
from onion.tasks.data.texts import PAIR, TEXT, TextTask, checked_texts
from onion.tasks.decoding import match_scores, pair_scores
from onion.tasks.metrics.ranking import PairMetric, RankingMetric, decisions, order, ranking
from onion.tasks.reports.one_label import one_label_report
from onion.tasks.reports.report import Report
from onion.tasks.task import NOT_OF_FEATURES, TEXT_VECTOR
from onion.tasks.validators import BELOW_ONE, NAME, SHARE, SWITCH, as_float, as_name, one_of

if TYPE_CHECKING:
    from paddle import nn

    from onion.tasks.task import Decode

NEGATIVE, QUESTION = "text_b_neg", "qid"
POINTWISE, PAIRWISE = "pointwise", "pairwise"


@attrs.frozen(kw_only=True)
class Matching(TextTask):
    """Matching of two texts, trained on judged rows or on pairs of a better and a worse second text.

    If training is pairwise, a test file may be of either kind. Metrics:

    * rows, trained pointwise: ``accuracy`` and ``f1``; with ``qid`` also ``mrr`` and ``map``;
    * rows, trained pairwise: ``accuracy``, the share of correctly ordered pairs of a matching and another row (of the
      same ``qid``, if there is one); ``mrr`` and ``map`` as above;
    * pairs: ``accuracy``, the share of correctly ordered pairs.

    Attributes:
        learning: ``"pointwise"`` or ``"pairwise"`` (PaddlePALM's ``learning_strategy``). Default: by the columns of the
            training file; pairwise if it has both kinds.
        labels: two, the second means a match. Default: those of a pointwise training file, otherwise ``0`` and ``1``.
        fits: the label that means a match, which becomes the second. Default: the second one.
        questions: whether the training file has ``qid``; then other labelled files need it, too.
        margin: the desired difference of the scores of a pair.
        dropout: of the pooled output. Default: the encoder's.
    """

    name = "matching"
    features_version = 1
    head_over = TEXT_VECTOR
    together = QUESTION

    pairs: bool | None = True
    learning: str | None = attrs.field(default=None, validator=optional(one_of((POINTWISE, PAIRWISE))))
    labels: Labels = attrs.field(default=Labels(()), converter=as_labels)
    fits: str | None = attrs.field(default=None, converter=as_name, validator=optional(NAME), metadata=NOT_OF_FEATURES)
    questions: bool = attrs.field(default=False, validator=SWITCH)
    margin: float = attrs.field(default=0.5, converter=as_float, validator=SHARE, metadata=NOT_OF_FEATURES)
    dropout: float | None = attrs.field(
        default=None, converter=as_float, validator=optional(BELOW_ONE), metadata=NOT_OF_FEATURES
    )

    @labels.validator
    def _two(self, _: Any, labels: Labels) -> None:
        if len(labels) not in (0, 2):
            raise ValueError(f"there must be two labels, one for a match and one for others, not {labels.told()}")

    @property
    def monitor(self) -> str:  # type: ignore[override]
        """``mrr`` if the rows belong to questions, of whose rows few match; otherwise ``accuracy``."""
        return "mrr" if self.questions else "accuracy"

    # -- data ---------------------------------------------------------------------------------------------------------

    def rows(self, path: str | Path, labelled: bool) -> Iterator[Row]:
        """Yield the rows of a file; see ``Task.rows``."""
        columns = self.columns(path) if labelled else [TEXT, PAIR]
        absent = self._absent(columns) if labelled else []
        for row in checked_texts(file_rows(path, columns, absent), self.pairs):
            for column in absent:
                if column in row.cells:
                    raise row.error(f"{column} is here but not in the first row; give it in all rows or in none")
            if NEGATIVE in columns:
                row.text(NEGATIVE)
            if QUESTION in columns:
                row.label(QUESTION)
            yield row

    def _absent(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that would make this another kind of file if the first row had them."""
        if NEGATIVE in columns:
            return []
        kinds = [QUESTION] if self.learning == POINTWISE else [NEGATIVE, QUESTION]
        return [name for name in kinds if name not in columns]

    def columns(self, path: str | Path) -> list[str]:
        """Return the columns that every labelled row of a file must have, according to its first row.

        Raises:
            DataError: the file cannot be read, or has no texts.
        """
        first = next(file_rows(path, [TEXT, PAIR], [NEGATIVE, self.target, QUESTION])).cells
        if NEGATIVE in first and self.learning != POINTWISE:
            return [TEXT, PAIR, NEGATIVE]
        return [TEXT, PAIR, self.target, *[QUESTION] * (self.questions or QUESTION in first)]

    def fitted(self, path: str | Path) -> Matching:
        """Return the task with the kind of training and the two labels."""
        columns = self.columns(path)
        if NEGATIVE in columns:
            return self._knowing(self.labels or Labels(("0", "1")), learning=PAIRWISE)
        if self.learning == PAIRWISE:
            raise DataError(f"{path}: there is no column {NEGATIVE!r}, which pairwise learning needs")
        return self._knowing(self._two_labels(path), learning=POINTWISE, questions=QUESTION in columns)

    def _knowing(self, labels: Labels, **more: Any) -> Matching:
        """Return the task with ordered labels and the given fields."""
        fits = labels.names[1] if self.fits is None else self.fits
        if fits not in labels:
            raise DataError(f"fits: there is no label {shown(fits)}, only {labels.told()}")
        ordered = Labels([*(name for name in labels if name != fits), fits])
        return attrs.evolve(self, labels=ordered, fits=fits, **more)

    def _two_labels(self, path: str | Path) -> Labels:
        """Return the labels of the setting, or those of the rows."""
        names: set[str] = set()
        for row in self.rows(path, labelled=True):
            name = row.label(self.target)
            if len(names | {name}) > 2:
                raise row.error(f"a third label, {shown(name)}; matching needs exactly two: {Labels.of(names).told()}")
            names.add(name)
        if len(names) < 2:
            raise DataError(f"{path}: matching needs rows with two labels; all rows have {shown(min(names))}")
        return self.labels or Labels.of(names)

    def features(self, rows: Sequence[Row], tokenizer: Tokenizer, labelled: bool, notes: Counter[str]) -> list[Example]:
        """Return ``ids``, ``types`` (int64 ``[length]``), and ``label`` or those of the worse text."""
        examples = super().features(rows, tokenizer, labelled, notes)
        if labelled and NEGATIVE in rows[0].cells:
            worse = [attrs.evolve(row, cells={**row.cells, PAIR: row.cells[NEGATIVE]}) for row in rows]
            for example, found in zip(examples, self.encodings(worse, tokenizer, notes), strict=True):
                example |= {"ids_neg": found.ids, "types_neg": found.types}
        return examples

    def targets(self, row: Row) -> dict[str, Any]:
        """Return whether the texts of a row match, 1 or 0; nothing for a pair."""
        if NEGATIVE in row.cells:
            return {}
        label = row.label(self.target)
        if label not in self.labels:
            raise row.error(f"the label {shown(label)} is unknown; the setting labels has {self.labels.told()}")
        return {"label": self.labels.numbers()[label]}

    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch; of pairs, it has the rows of all better texts, then those of all worse texts."""
        if "ids_neg" not in examples[0]:
            return batch_of(examples, pad_id)
        worse = [{"ids": example["ids_neg"], "types": example["types_neg"]} for example in examples]
        batch = batch_of([*examples, *worse], pad_id)
        return {**batch, "places": batch["places"][: len(examples)]}

    def classes(self, examples: Examples) -> np.ndarray | None:
        """Return the numbers of the labels; pairs of a better and a worse text have none."""
        return None if self.learning == PAIRWISE else examples.columns["label"].values

    # -- learning and results -----------------------------------------------------------------------------------------

    def network(self, encoder: nn.Layer) -> nn.Layer:
        """Put a ``PointwiseMatcher`` or a ``PairwiseMatcher`` over an encoder."""
        from onion.tasks.networks.matchers import PairwiseMatcher, PointwiseMatcher

        if self.learning == PAIRWISE:
            return PairwiseMatcher(encoder, self.margin, self.dropout)
        return PointwiseMatcher(encoder, 2, self.dropout)

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Give the scores; see ``Task.decoding``."""
        return pair_scores if self.learning == PAIRWISE else match_scores

    def metric(self, path: str | Path) -> Metric:
        """Measure what the columns of the file allow."""
        columns = self.columns(path)
        if NEGATIVE in columns:
            return PairMetric()
        figures = [order if self.learning == PAIRWISE else decisions]
        rows = self.rows(path, labelled=True)
        if QUESTION not in columns:
            return RankingMetric(figures, np.zeros(sum(1 for _ in rows), np.int64))
        numbers: dict[str, int] = {}
        questions = [numbers.setdefault(row.label(QUESTION), len(numbers)) for row in rows]
        return RankingMetric([*figures, ranking], questions)

    def predictions(
        self, rows: Sequence[Row], examples: Sequence[Example], decoded: Sequence[float]
    ) -> Iterator[dict[str, Any]]:
        """Yield the score and, if trained pointwise, the more probable label."""
        for score in decoded:
            label = {"label": self.labels.names[int(score > 0.5)]} if self.learning == POINTWISE else {}
            yield {"score": round(float(score), 6), **label}

    def report(self, rows: Sequence[Row], predicted: Iterable[Mapping[str, Any]]) -> Report:
        """Return what ``classification`` reports if there are labels on both sides; see ``Task.report``."""
        if self.learning == PAIRWISE or NEGATIVE in rows[0].cells:
            return Report()
        found = [(each["label"], max(each["score"], round(1 - each["score"], 6))) for each in predicted]
        return one_label_report(self.labels, rows, [row.label(self.target) for row in rows], found)

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the accuracy of always predicting the more frequent label, if there are labels."""
        if self.learning == PAIRWISE:
            return {}
        share = float(np.mean([example["label"] for example in examples]))
        return {"majority_accuracy": max(share, 1 - share)}
