"""How closely predicted numbers follow the true ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from onion.errors import OnionError
from onion.tasks.metrics.state import StatefulMetric


class CorrelationMetric(StatefulMetric):
    """Pearson's and Spearman's correlation, and the mean squared error, of numbers and ``batch["labels"]``.

    The metrics of STS-B in GLUE (Wang et al. 2018). Both correlations are scipy's; undefined ones (all numbers of one
    side are equal, or there is only one example) are 0. They are NaN if a predicted number is, so a network with NaN
    outputs is never the best.

    Raises:
        OnionError: scipy is not installed; raised when the metric is created, before training.
    """

    less_is_better = frozenset({"mean_squared_error"})
    predicted: np.ndarray
    true: np.ndarray

    def __init__(self) -> None:
        self._pearson, self._spearman = _correlations()
        super().__init__(predicted=np.zeros(0), true=np.zeros(0))

    def update(self, outputs: Any, batch: Any) -> None:
        """Add the predicted and the true numbers of a batch."""
        self.predicted = np.append(self.predicted, np.asarray(outputs, np.float64))
        self.true = np.append(self.true, np.asarray(batch["labels"], np.float64))

    def result(self) -> dict[str, float]:
        """Return the figures: correlations from -1 to 1, the error in squared units of the labels."""
        wrong = self.predicted - self.true
        return {
            "pearson": _defined(self._pearson, self.predicted, self.true),
            "spearman": _defined(self._spearman, self.predicted, self.true),
            "mean_squared_error": float(np.mean(wrong**2)) if len(wrong) else 0.0,
        }


def _correlations() -> tuple[Callable[..., Any], Callable[..., Any]]:
    try:
        from scipy.stats import pearsonr, spearmanr
    except ImportError:
        raise OnionError("correlations need scipy: pip install 'onion-paddle[metrics]'.") from None
    return pearsonr, spearmanr


def _defined(correlation: Callable[..., Any], predicted: np.ndarray, true: np.ndarray) -> float:
    """Return a correlation, 0 if it is undefined."""
    if len(true) < 2 or (predicted == predicted[0]).all() or (true == true[0]).all():
        return 0.0
    with warnings.catch_warnings():  # "nearly constant", "overflow": visible in the figure
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(correlation(predicted, true)[0])
