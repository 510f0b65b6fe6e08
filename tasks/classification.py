"""``classification``: one label for a text or a pair of texts.

File: ``text_a``, ``text_b`` if the rows are pairs, ``label`` (any string or number).
Prediction: ``label``, and ``probabilities`` by label.
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
from onion.messages import shown
from onion.tasks.data.features.examples import Example, Examples
from onion.tasks.data.labels import Labels, as_labels
from onion.tasks.data.rows import Row
from onion.tasks.data.texts import TextTask
from onion.tasks.decoding import class_probabilities
from onion.tasks.metrics.classification import ClassificationMetric
from onion.tasks.reports.one_label import one_label_report
from onion.tasks.reports.report import Report
from onion.tasks.task import NOT_OF_FEATURES, TEXT_VECTOR
from onion.tasks.validators import BELOW_ONE, QUOTE, as_float, as_name
from onion.validation import is_number

if TYPE_CHECKING:
    from paddle import nn

    from onion.tasks.networks.classifier import Classifier
    from onion.tasks.task import Decode

LARGEST = 1e6
"""The largest weight of a class: far more than any ratio of classes, and far from overflow in float32."""


BALANCED = "balanced"


def _by_label(weights: Any) -> Any:
    """Convert names that are integers and weights that are quoted; anything but a mapping stays as it is."""
    if not isinstance(weights, Mapping):
        return weights
    found: dict[Any, Any] = {}
    for name, weight in weights.items():
        if as_name(name) in found:
            raise DataError(f"class_weights: the label {shown(as_name(name))} is given twice; remove one")
        found[as_name(name)] = as_float(weight)
    return found


def _check_weights(task: Any, field: Any, weights: Any) -> None:
    if weights == BALANCED:
        return
    if not isinstance(weights, Mapping):
        raise DataError(
            f"class_weights: {shown(weights)} is not a mapping of labels to numbers >= 0, nor {BALANCED!r}; "
            """on the command line write --set 'class_weights={"LABEL": 2}'"""
        )
    for name, weight in weights.items():
        if not isinstance(name, str):
            raise DataError(f"class_weights: the label {shown(name)} is not a string or an integer; {QUOTE}")
        if not (is_number(weight) and 0 <= weight <= LARGEST):
            raise DataError(
                f"class_weights: the weight of {shown(name)}, {shown(weight)}, is not a number from 0 to {LARGEST:g}"
            )


@attrs.frozen(kw_only=True)
class Classification(TextTask):
    """Classification of a text or a pair of texts.

    Attributes:
        labels: all labels, in the order of the logits. Default: those of the training file.
        class_weights: label -> weight of its examples in the loss, which is the weighted mean; other labels have the
            weight 1. ``balanced``: ``rows / (labels * rows of the label)`` of the training file, as in scikit-learn.
        label_smoothing: the share of the target that is spread over all labels (Szegedy et al. 2015, section 7).
        dropout: of the pooled output. Default: the encoder's.
    """

    name = "classification"
    features_version = 1
    head_over = TEXT_VECTOR
    monitor = "accuracy"

    labels: Labels = attrs.field(default=Labels(()), converter=as_labels)
    class_weights: Mapping[str, float] | str | None = attrs.field(
        default=None, converter=_by_label, validator=optional(_check_weights), metadata=NOT_OF_FEATURES
    )
    label_smoothing: float = attrs.field(default=0.0, converter=as_float, validator=BELOW_ONE, metadata=NOT_OF_FEATURES)
    dropout: float | None = attrs.field(
        default=None, converter=as_float, validator=optional(BELOW_ONE), metadata=NOT_OF_FEATURES
    )

    def fitted(self, path: str | Path) -> Classification:
        """Return the task with the labels and with ``pairs``."""
        task = super().fitted(path)
        counts: Counter[str] = Counter()
        if not self.labels or self.class_weights == BALANCED:
            counts.update(row.label(self.target) for row in self.rows(path, labelled=True))
        labels = self.labels or Labels.of(counts)
        if len(labels) < 2:
            raise DataError(f"{path}: all rows have the label {labels.told()}; there is nothing to learn.")
        weights = self._named_weights(labels, counts)
        unknown = [name for name in weights or () if name not in labels]
        if unknown:
            raise DataError(f"class_weights: there is no label {shown(unknown[0])} in {path}, only {labels.told()}")
        if weights and not any(weights.get(name, 1.0) for name in labels):
            raise DataError(f"class_weights: every label of {path} has the weight 0; there is nothing to learn.")
        return attrs.evolve(task, labels=labels, class_weights=weights)

    def _named_weights(self, labels: Labels, counts: Mapping[str, int]) -> Mapping[str, float] | None:
        """Return the weights by label: those that were given, or balanced ones; a label without rows has weight 1."""
        if not isinstance(self.class_weights, str):
            return self.class_weights
        rows = sum(counts.values())
        return {name: rows / (len(labels) * counts[name]) if counts.get(name) else 1.0 for name in labels}

    def targets(self, row: Row) -> dict[str, Any]:
        """Return the number of the row's label."""
        return {"label": self.labels.number(row, row.label(self.target))}

    def classes(self, examples: Examples) -> np.ndarray:
        """Return the numbers of the labels."""
        return examples.columns["label"].values

    def network(self, encoder: nn.Layer) -> Classifier:
        """Put a ``Classifier`` over an encoder."""
        from onion.tasks.networks.classifier import Classifier

        named = self.class_weights
        weights = [float(named.get(name, 1.0)) for name in self.labels] if isinstance(named, Mapping) else None
        return Classifier(encoder, len(self.labels), self.dropout, weights, self.label_smoothing)

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Give the probabilities of the labels; see ``Task.decoding``."""
        return class_probabilities

    def metric(self, path: str | Path) -> ClassificationMetric:
        """Measure accuracy, F1 and Matthews' correlation."""
        return ClassificationMetric(self.labels)

    def predictions(
        self, rows: Sequence[Row], examples: Sequence[Example], decoded: Sequence[np.ndarray]
    ) -> Iterator[dict[str, Any]]:
        """Give the label and the probability of every label."""
        for probabilities in decoded:
            named = zip(self.labels.names, probabilities.tolist(), strict=True)
            yield {
                "label": self.labels.names[int(np.argmax(probabilities))],
                "probabilities": {name: round(value, 6) for name, value in named},
            }

    def report(self, rows: Sequence[Row], predicted: Iterable[Mapping[str, Any]]) -> Report:
        """Return the figures of each label, their confusions, and the errors; see ``Task.report``."""
        found = [(each["label"], max(each["probabilities"].values())) for each in predicted]
        return one_label_report(self.labels, rows, [row.label(self.target) for row in rows], found)

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the accuracy of always predicting the most frequent label."""
        counts = Counter(example["label"] for example in examples)
        return {"majority_accuracy": counts.most_common(1)[0][1] / len(examples)}
