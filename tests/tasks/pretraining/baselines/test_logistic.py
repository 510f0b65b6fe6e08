import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from onion.tasks.pretraining.baselines.logistic import logistic_accuracy


@pytest.mark.parametrize("numbers", [1, 2, 4])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_it_is_as_right_as_the_reference(numbers, shift):
    chance = np.random.default_rng(numbers)
    weights = chance.normal(size=numbers) * 3
    known = chance.normal(size=(400, numbers)) * 10 + 5
    labels = (known @ weights / 10 + shift + chance.normal(size=400) > (5 * weights / 10).sum()).astype(np.int64)
    scaled = (known - known[:200].mean(axis=0)) / known[:200].std(axis=0)
    wanted = LogisticRegression(tol=1e-8).fit(scaled[:200], labels[:200]).score(scaled[200:], labels[200:])
    found = logistic_accuracy(known[:200], labels[:200], known[200:], labels[200:])
    assert found == pytest.approx(wanted, abs=1e-9)
    assert found > 0.7


def test_what_is_perfectly_told_or_not_at_all_does_no_harm():
    numbers, labels = np.arange(20.0)[:, None], np.arange(20) >= 10
    assert logistic_accuracy(numbers, labels, numbers, labels) == 1
    assert logistic_accuracy(np.zeros((20, 1)), labels, np.ones((4, 1)), np.ones(4)) in (0, 1)
    assert logistic_accuracy(numbers, np.ones(20), numbers, np.ones(20)) == 1
