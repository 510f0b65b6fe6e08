import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from onion.tasks.metrics.correlation import CorrelationMetric

NUMBERS = st.floats(-1e3, 1e3, width=32).map(lambda value: round(value, 2))


def measured(predicted, true, batches=1):
    metric = CorrelationMetric()
    for part in np.array_split(np.arange(len(true)), batches):
        metric.update([predicted[i] for i in part], {"labels": np.array(true, np.float32)[part]})
    return metric.result()


@pytest.mark.parametrize(("predicted", "true"), [([2, 2, 2], [1, 2, 3]), ([1, 2, 3], [0, 0, 0]), ([1], [2]), ([], [])])
def test_where_no_correlation_is_defined_it_is_0_and_nobody_is_warned(predicted, true):
    result = measured(predicted, true)
    assert (result["pearson"], result["spearman"]) == (0.0, 0.0)


def test_nearly_constant_predictions_warn_nobody():
    result = measured([1e6, 1e6 + 1e-9, 1e6], [1, 2, 3])
    assert -1 <= result["pearson"] <= 1


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_network_that_came_to_nothing_earns_nothing(wrong):
    assert math.isnan(measured([1.0, wrong, 2.0], [1, 2, 3])["pearson"])


@settings(max_examples=150)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=30), st.integers(1, 5))
def test_against_numpy_and_the_definition_of_ranks(pairs, batches):
    predicted, true = (np.array(side, np.float32).astype(np.float64) for side in zip(*pairs, strict=True))
    result = measured(predicted.tolist(), true.tolist(), batches)
    assert result["mean_squared_error"] == pytest.approx(np.square(predicted - true).mean())
    if np.ptp(predicted) and np.ptp(true):
        ranks = stats.rankdata(predicted), stats.rankdata(true)
        assert result["pearson"] == pytest.approx(np.corrcoef(predicted, true)[0, 1], abs=1e-9)
        assert result["spearman"] == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-9)
