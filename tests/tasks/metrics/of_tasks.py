"""Every metric that counts or collects, with two batches."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.chunk_f1 import IGNORED, ChunkMetric
from onion.tasks.metrics.classification import ClassificationMetric, MultiLabelMetric
from onion.tasks.metrics.correlation import CorrelationMetric
from onion.tasks.metrics.perplexity import Guesses, PerplexityMetric
from onion.tasks.metrics.ranking import PairMetric, RankingMetric, decisions, ranking
from onion.tasks.token_classification.tags import Tags


class Case(NamedTuple):
    """How a metric is made, the arguments of two updates, and what it measures before the first."""

    make: Callable[[], Any]
    batches: list[tuple[Any, dict[str, Any]]]
    nothing: dict[str, float]


def guesses(*best):
    return Guesses(np.array(best)[:, None], np.ones((len(best), 1)), np.array(best, np.float32) / 7)


def tags_of(*numbers):
    return Tags(np.array(numbers), np.ones(len(numbers)))


WINDOWS = {"rows": [1, 0], "begins": [2, 0], "tags": np.array([IGNORED, IGNORED, 2, 0, 1])}
METRICS = {
    "classification": Case(
        lambda: ClassificationMetric(Labels(["a", "b", "c"])),
        [(np.eye(3), {"labels": np.array([0, 1, 1])}), (np.eye(3)[:1], {"labels": np.array([2])})],
        {"accuracy": 0.0, "f1_macro": 0.0, "matthews": 0.0},
    ),
    "correlation": Case(
        CorrelationMetric,
        [([1.0, 2.0], {"labels": np.array([3.0, 1.0])}), ([0.0], {"labels": np.array([9.0])})],
        {"pearson": 0.0, "spearman": 0.0, "mean_squared_error": 0.0},
    ),
    "multilabel": Case(
        lambda: MultiLabelMetric(Labels(["x", "y", "z"])),
        [([np.ones(3)], {"labels": np.array([[1, 1, 0]])}), ([np.zeros(3)], {"labels": np.array([[0, 0, 0]])})],
        {"f1_micro": 0.0, "f1_macro": 0.0, "accuracy": 0.0},
    ),
    "perplexity": Case(
        PerplexityMetric,
        [([guesses(1, 2)], {"labels": np.array([1, 3])}), ([guesses(9)], {"labels": np.array([9])})],
        {"perplexity": 1.0, "accuracy": 0.0},
    ),
    "ranking": Case(
        lambda: RankingMetric([decisions, ranking], [7, 7, 5]),
        [([0.9, 0.2], {"labels": [1, 0], "places": [1, 0]}), ([0.7], {"labels": [0], "places": [2]})],
        {"accuracy": 0.0, "f1": 0.0, "mrr": 0.0, "map": 0.0},
    ),
    "pairs": Case(
        PairMetric,
        [([np.array([0.6, 0.4]), np.array([0.5, 0.5])], {}), ([np.array([0.9, 0.1])], {})],
        {"accuracy": 0.0},
    ),
    "chunks": Case(
        lambda: ChunkMetric(Labels(["O", "B-x", "I-x"])),
        [
            ([tags_of(2, 0), tags_of(0)], WINDOWS),
            ([tags_of(1, 2)], {"rows": [1], "begins": [0], "tags": np.array([1, 2, IGNORED])}),
        ],
        dict.fromkeys(("precision", "recall", "f1", "accuracy", "f1.x"), 0.0),
    ),
}
