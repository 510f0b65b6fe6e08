"""``classify``: one label for a text or a pair of texts.

File: ``text_a``, ``text_b`` if the rows are pairs, ``label`` (any text or number).
Prediction: ``label``, and ``probabilities`` by label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import paddle
from attrs.validators import optional
from paddle import nn
from paddle.nn import functional

from onion.errors import DataError
from onion.tasks.checks import BELOW_ONE, checked, is_number
from onion.tasks.features.examples import Example
from onion.tasks.heads import SentenceHead, softmax
from onion.tasks.labels import Labels
from onion.tasks.metrics.classification import ClassificationMetric
from onion.tasks.rows import Row
from onion.tasks.task import NOT_OF_FEATURES
from onion.tasks.texts import TextTask

_weights = checked(
    "a number from 0 for each label that is named, one of them above 0",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and is_number(weight) and weight >= 0 for name, weight in value.items())
        and (not value or max(value.values()) > 0)
    ),
)


@attrs.frozen(kw_only=True)
class Classification(TextTask):
    """Classification of a text or a pair of texts.

    Attributes:
        labels: all of them, in the order of the logits; none given: those of the training file.
        class_weights: label -> how much an example of it counts; a label that is not named counts 1. The cost is the
            weighted mean.
        label_smoothing: the share of the target that is spread over all labels (Szegedy et al. 2015, section 7).
        dropout: of the pooled output; None: the encoder's.
    """

    name = "classify"
    best = "accuracy"

    labels: Labels = attrs.field(default=Labels(()), converter=Labels.from_names)
    class_weights: Mapping[str, float] | None = attrs.field(
        default=None, validator=optional(_weights), metadata=NOT_OF_FEATURES
    )
    label_smoothing: float = attrs.field(default=0.0, validator=BELOW_ONE, metadata=NOT_OF_FEATURES)
    dropout: float | None = attrs.field(default=None, validator=optional(BELOW_ONE), metadata=NOT_OF_FEATURES)

    def fitted(self, path: str | Path) -> Classification:
        """Return the task that knows the labels, and whether the rows are pairs."""
        task = super().fitted(path)
        labels = self.labels or Labels.of(row.label(self.target) for row in self.rows(path, labelled=True))
        if len(labels) < 2:
            raise DataError(f"{path}: all rows have the label {labels.names[0]!r}; there is nothing to learn.")
        unknown = [name for name in task.class_weights or () if name not in labels]
        if unknown:
            raise DataError(f"class_weights: there is no label {unknown[0]!r} in {path}; {labels.told()}")
        return attrs.evolve(task, labels=labels)

    def learned(self, row: Row) -> dict[str, Any]:
        """Return the number of the row's label."""
        return {"label": self.labels.number(row, row.label(self.target))}

    def network(self, encoder: nn.Layer) -> Classifier:
        """Put a :class:`Classifier` over an encoder."""
        weights = None
        if self.class_weights:
            weights = [float(self.class_weights.get(name, 1.0)) for name in self.labels.names]
        return Classifier(encoder, len(self.labels), self.dropout, weights, self.label_smoothing)

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

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return what always answering the commonest label would score."""
        counts = Counter(example["label"] for example in examples)
        return {"majority_accuracy": counts.most_common(1)[0][1] / len(examples)}


class Classifier(SentenceHead):
    """A head with one logit a label.

    Args:
        encoder: see SentenceHead.
        classes: how many labels there are, at least 2.
        dropout: see SentenceHead.
        weights: of the labels in the cost. Default: all 1.
        smoothing: of the labels.
    """

    def __init__(
        self,
        encoder: nn.Layer,
        classes: int,
        dropout: float | None = None,
        weights: Sequence[float] | None = None,
        smoothing: float = 0.0,
    ) -> None:
        super().__init__(encoder, classes, dropout)
        self._weights = None if weights is None else paddle.to_tensor(weights, dtype="float32")
        self._smoothing = smoothing

    def cost(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean cross-entropy, a scalar; weighted, it is divided by the sum of the weights."""
        labels = batch["labels"]
        if not self._smoothing:
            return functional.cross_entropy(logits, labels, weight=self._weights)
        logs = functional.log_softmax(logits)
        own = -paddle.take_along_axis(logs, labels.unsqueeze(1), 1).squeeze(1)
        each = (1 - self._smoothing) * own - self._smoothing * logs.mean(axis=1)
        if self._weights is None:
            return each.mean()
        weights = paddle.gather(self._weights, labels)
        return (each * weights).sum() / weights.sum()

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[np.ndarray]:
        """Return the probabilities ``[classes]`` of every example."""
        return list(softmax(logits.numpy()))
