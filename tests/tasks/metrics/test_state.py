"""Every metric that counts or collects can be saved in mid-pass, and forgets all when it is reset."""

import json

import numpy as np
import pytest

from onion.items.evaluator import SavedMetric
from onion.tasks.data.labels import Labels
from onion.tasks.metrics.chunk_f1 import IGNORED, ChunkMetric
from onion.tasks.metrics.classification import ClassificationMetric
from onion.tasks.metrics.correlation import CorrelationMetric
from onion.tasks.metrics.multilabel import MultiLabelMetric
from onion.tasks.metrics.perplexity import Guesses, PerplexityMetric
from onion.tasks.metrics.ranking import PairMetric, RankingMetric, decisions, ranking


def guesses(*best):
    return Guesses(np.array(best)[:, None], np.ones((len(best), 1)), np.array(best, np.float32) / 7)


WINDOWS = {"rows": [1, 0], "begins": [2, 0], "tags": np.array([IGNORED, IGNORED, 2, 0, 1])}
METRICS = {
    # how it is made, two batches (outputs, batch), and what it measures before the first
    "classification": (
        lambda: ClassificationMetric(Labels(["a", "b", "c"])),
        [(np.eye(3), {"labels": np.array([0, 1, 1])}), (np.eye(3)[:1], {"labels": np.array([2])})],
        {"accuracy": 0.0, "f1_macro": 0.0, "matthews": 0.0},
    ),
    "correlation": (
        CorrelationMetric,
        [([1.0, 2.0], {"labels": np.array([3.0, 1.0])}), ([0.0], {"labels": np.array([9.0])})],
        {"pearson": 0.0, "spearman": 0.0, "mean_squared_error": 0.0},
    ),
    "multilabel": (
        lambda: MultiLabelMetric(Labels(["x", "y", "z"])),
        [([np.ones(3)], {"labels": np.array([[1, 1, 0]])}), ([np.zeros(3)], {"labels": np.array([[0, 0, 0]])})],
        {"f1_micro": 0.0, "f1_macro": 0.0, "accuracy": 0.0},
    ),
    "perplexity": (
        PerplexityMetric,
        [([guesses(1, 2)], {"labels": np.array([1, 3])}), ([guesses(9)], {"labels": np.array([9])})],
        {"perplexity": 1.0, "accuracy": 0.0},
    ),
    "ranking": (
        lambda: RankingMetric([decisions, ranking], [7, 7, 5]),
        [([0.9, 0.2], {"labels": [1, 0], "places": [1, 0]}), ([0.7], {"labels": [0], "places": [2]})],
        {"accuracy": 0.0, "f1": 0.0, "mrr": 0.0, "map": 0.0},
    ),
    "pairs": (
        PairMetric,
        [([np.array([0.6, 0.4]), np.array([0.5, 0.5])], {}), ([np.array([0.9, 0.1])], {})],
        {"accuracy": 0.0},
    ),
    "chunks": (
        lambda: ChunkMetric(Labels(["O", "B-x", "I-x"])),
        [
            ([np.array([2, 0]), np.array([0])], WINDOWS),
            ([np.array([1, 2])], {"rows": [1], "begins": [0], "tags": np.array([1, 2, IGNORED])}),
        ],
        dict.fromkeys(("precision", "recall", "f1", "accuracy", "f1.x"), 0.0),
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_that_was_saved_in_mid_pass_ends_alike(name):
    make, (first, second), nothing = METRICS[name]
    whole, cut, resumed = make(), make(), make()
    assert isinstance(whole, SavedMetric)
    assert whole.result() == nothing
    for metric in (whole, cut):
        metric.update(*first)
    saved = json.dumps(cut.state_dict(), default=lambda array: array.tolist())
    resumed.load_state_dict(json.loads(saved))
    assert resumed.result() == cut.result() != nothing
    for metric in (whole, resumed):
        metric.update(*second)
    assert resumed.result() == whole.result() != cut.result()
    assert all(type(value) is float for value in whole.result().values())
    whole.reset()
    assert whole.result() == nothing
