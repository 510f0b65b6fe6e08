import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.tasks.metrics.null_threshold import best_threshold

ODDS = st.sampled_from([-2.5, -1.0, -0.25, 0.0, 0.25, 7.0]) | st.floats(-30, 30, width=32)
SCORES = st.sampled_from([0.0, 0.5, 1.0])


def reached(threshold, odds, answered, refused):
    """The mean score with a threshold, by its definition."""
    return np.where(odds <= threshold, answered, refused).mean()


@given(st.lists(st.tuples(ODDS, SCORES, SCORES), min_size=1, max_size=12))
def test_no_threshold_is_better_and_no_smaller_one_as_good(questions):
    odds, answered, refused = np.array(questions, np.float64).T
    threshold, score = best_threshold(odds, answered, refused)
    tried = [odds.min() - 1, *np.unique(odds)]  # every way to part the questions
    scores = [reached(each, odds, answered, refused) for each in tried]
    assert score == pytest.approx(max(scores))
    assert reached(threshold, odds, answered, refused) == pytest.approx(score)
    smaller = [each for each, other in zip(tried, scores, strict=True) if other > score - 1e-9]
    assert (odds <= threshold).tolist() == (odds <= smaller[0]).tolist()


def test_by_hand():
    odds, answered, refused = np.array([3.0, -1.0, 1.0]), np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])
    assert best_threshold(odds, answered, refused) == (2.0, 1.0)
    assert best_threshold(odds, refused, answered) == (-1.5, pytest.approx(2 / 3))
    assert best_threshold(odds, np.ones(3), np.zeros(3)) == (3.5, 1.0)


def test_equal_odds_go_together():
    odds = np.zeros(3)
    assert best_threshold(odds, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])) == (-0.5, pytest.approx(2 / 3))
    assert best_threshold(odds, np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])) == (0.5, pytest.approx(2 / 3))
