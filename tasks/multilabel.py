"""``multilabel``: any number of labels for a text or a pair of texts.

File: ``text_a``, ``text_b`` if the rows are pairs, ``label``: names separated by ``,`` or, in JSON, a list of names.
Spaces around a name are ignored; an empty cell or list means no label.
Prediction: ``labels``, those with a probability over the threshold, and ``probabilities`` by label.
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
from onion.tasks.data.features.examples import Example
from onion.tasks.data.labels import Labels, as_labels
from onion.tasks.data.rows import Row
from onion.tasks.data.texts import TextTask
from onion.tasks.decoding import label_probabilities
from onion.tasks.metrics.classification import MultiLabelMetric
from onion.tasks.reports.report import Report
from onion.tasks.reports.several_labels import several_labels_report
from onion.tasks.task import AFTER_TRAINING, NOT_OF_FEATURES, TEXT_VECTOR
from onion.tasks.validators import BELOW_ONE, NAME, as_float, as_name

if TYPE_CHECKING:
    from paddle import nn

    from onion.tasks.networks.multilabel_classifier import MultiLabelClassifier
    from onion.tasks.task import Decode


@attrs.frozen(kw_only=True)
class MultiLabel(TextTask):
    """Classification with an independent decision for each label.

    Attributes:
        labels: all labels, in the order of the logits. Default: those of the training file.
        separator: between the names in a cell.
        threshold: labels with a larger probability are predicted.
        dropout: of the pooled output. Default: the encoder's.
    """

    name = "multilabel"
    features_version = 1
    head_over = TEXT_VECTOR
    monitor = "f1_micro"

    labels: Labels = attrs.field(default=Labels(()), converter=as_labels)
    separator: str = attrs.field(default=",", converter=as_name, validator=NAME)
    threshold: float = attrs.field(default=0.5, converter=as_float, validator=BELOW_ONE, metadata=AFTER_TRAINING)
    dropout: float | None = attrs.field(
        default=None, converter=as_float, validator=optional(BELOW_ONE), metadata=NOT_OF_FEATURES
    )

    def fitted(self, path: str | Path) -> MultiLabel:
        """Return the task with the labels and with ``pairs``."""
        labels = self.labels or Labels.of(name for row in self.rows(path, labelled=True) for name in self._names(row))
        if not labels:
            raise DataError(f"{path}: no row has a label; there is nothing to learn.")
        return attrs.evolve(super().fitted(path), labels=labels)

    def targets(self, row: Row) -> dict[str, Any]:
        """Return the numbers of the row's labels, int64 ``[any]``, ascending and distinct."""
        numbers = {self.labels.number(row, name) for name in self._names(row)}
        return {"marks": np.array(sorted(numbers), np.int64)}

    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch with ``labels``, 1 where an example has a label and 0 elsewhere: float32 ``[batch, labels]``."""
        batch = super().collate(examples, pad_id)
        if "marks" in examples[0]:
            batch["labels"] = np.zeros((len(examples), len(self.labels)), np.float32)
            for has, example in zip(batch["labels"], examples, strict=True):
                has[example["marks"]] = 1
        return batch

    def network(self, encoder: nn.Layer) -> MultiLabelClassifier:
        """Put a ``MultiLabelClassifier`` over an encoder."""
        from onion.tasks.networks.multilabel_classifier import MultiLabelClassifier

        return MultiLabelClassifier(encoder, len(self.labels), self.dropout)

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Give the probabilities of the labels; see ``Task.decoding``."""
        return label_probabilities

    def metric(self, path: str | Path) -> MultiLabelMetric:
        """Measure F1 and exact matches."""
        return MultiLabelMetric(self.labels, self.threshold)

    def predictions(
        self, rows: Sequence[Row], examples: Sequence[Example], decoded: Sequence[np.ndarray]
    ) -> Iterator[dict[str, Any]]:
        """Yield the labels over the threshold, and the probability of every label."""
        for probabilities in decoded:
            named = dict(zip(self.labels.names, probabilities.tolist(), strict=True))
            yield {
                "labels": [name for name, value in named.items() if value > self.threshold],
                "probabilities": {name: round(value, 6) for name, value in named.items()},
            }

    def report(self, rows: Sequence[Row], predicted: Iterable[Mapping[str, Any]]) -> Report:
        """Return the figures of each label, its decisions, and the rows with a wrong one; see ``Task.report``."""
        found = [(each["labels"], each["probabilities"]) for each in predicted]
        return several_labels_report(self.labels, rows, [self._names(row) for row in rows], found, self.separator)

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the accuracy of always predicting the most frequent set of labels."""
        counts = Counter(tuple(example["marks"]) for example in examples)
        return {"majority_accuracy": counts.most_common(1)[0][1] / len(examples)}

    def _names(self, row: Row) -> list[str]:
        """Return the names of the row's labels."""
        cell = row.cells[self.target]
        if isinstance(cell, list):
            names = [attrs.evolve(row, cells={self.target: name}).word(self.target).strip() for name in cell]
        else:
            word = row.word(self.target).strip()
            names = [name.strip() for name in word.split(self.separator)] if word else []
        if "" in names:
            raise row.error(f"an empty name among the labels {shown(cell)}; remove it")
        return names
