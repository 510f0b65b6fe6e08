"""``regression``: a number for a text or a pair of texts.

File: ``text_a``, ``text_b`` if the rows are pairs, ``label`` (a number, used without scaling: STS-B's are 0 to 5).
Prediction: ``value``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs.validators import optional

from onion.tasks.data.features.examples import Example
from onion.tasks.data.rows import Row
from onion.tasks.data.texts import TextTask
from onion.tasks.decoding import numbers
from onion.tasks.metrics.correlation import CorrelationMetric
from onion.tasks.reports.numbers import numbers_report
from onion.tasks.reports.report import Report
from onion.tasks.task import NOT_OF_FEATURES, TEXT_VECTOR
from onion.tasks.validators import BELOW_ONE, as_float

if TYPE_CHECKING:
    from paddle import nn

    from onion.tasks.networks.regressor import Regressor
    from onion.tasks.task import Decode

LARGEST = 1e18
"""The largest absolute value of a label; its square is finite in float32."""


@attrs.frozen(kw_only=True)
class Regression(TextTask):
    """Regression over a text or a pair of texts (BERT, Devlin et al. 2018, on STS-B).

    Attributes:
        dropout: of the pooled output. Default: the encoder's.
    """

    name = "regression"
    features_version = 1
    head_over = TEXT_VECTOR
    monitor = "pearson"

    dropout: float | None = attrs.field(
        default=None, converter=as_float, validator=optional(BELOW_ONE), metadata=NOT_OF_FEATURES
    )

    def targets(self, row: Row) -> dict[str, Any]:
        """Return the row's number."""
        value = row.number(self.target)
        if abs(value) > LARGEST:
            raise row.error(f"the absolute value of {self.target}, {value:g}, is above {LARGEST:g}; scale the labels")
        return {"label": value}

    def network(self, encoder: nn.Layer) -> Regressor:
        """Put a ``Regressor`` over an encoder."""
        from onion.tasks.networks.regressor import Regressor

        return Regressor(encoder, self.dropout)

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Give the numbers; see ``Task.decoding``."""
        return numbers

    def metric(self, path: str | Path) -> CorrelationMetric:
        """Measure both correlations and the mean squared error."""
        return CorrelationMetric()

    def predictions(
        self, rows: Sequence[Row], examples: Sequence[Example], decoded: Sequence[float]
    ) -> Iterator[dict[str, float]]:
        """Yield the number."""
        for value in decoded:
            yield {"value": round(value, 6)}

    def report(self, rows: Sequence[Row], predicted: Iterable[Mapping[str, float]]) -> Report:
        """Return the residuals; see ``Task.report``."""
        return numbers_report(rows, [row.number(self.target) for row in rows], [each["value"] for each in predicted])

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the mean squared error of always predicting the mean."""
        return {"label_variance": float(np.var([example["label"] for example in examples]))}
