import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.multilabel import MultiLabelMetric

LABELS = Labels(["x", "y", "z"])


def test_by_hand():
    metric = MultiLabelMetric(LABELS)
    metric.update([np.array([0.9, 0.1, 0.5]), np.array([0.6, 0.7, 0.2])], {"labels": np.array([[1, 0, 0], [0, 1, 0]])})
    metric.update([np.array([0.0, 0.0, 0.4])], {"labels": np.array([[0, 1, 0]], np.float32)})
    # x: said twice, there once, right once -> 2/3; y: said once, there twice, right once -> 2/3; z: nowhere -> 0
    # together: 4 / 6; only the first row is right in all (0.5 is not over the threshold)
    assert metric.result() == pytest.approx({"f1_micro": 4 / 6, "f1_macro": 4 / 9, "accuracy": 1 / 3})


def test_another_threshold():
    metric = MultiLabelMetric(LABELS, threshold=0.1)
    metric.update([np.array([0.2, 0.1, 0.0])], {"labels": np.array([[1, 0, 0]])})
    assert metric.result() == pytest.approx({"f1_micro": 1.0, "f1_macro": 1 / 3, "accuracy": 1.0})


@settings(max_examples=150)
@given(st.data())
def test_against_scikit_learn(data):
    labels, rows = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 12))
    table = st.lists(st.lists(st.integers(0, 1), min_size=labels, max_size=labels), min_size=rows, max_size=rows)
    true, predicted = np.array(data.draw(table)), np.array(data.draw(table))
    metric = MultiLabelMetric(Labels(map(str, range(labels))))
    for part in np.array_split(np.arange(rows), data.draw(st.integers(1, rows))):
        metric.update(0.3 + 0.4 * predicted[part], {"labels": true[part].astype(np.float32)})
    result = metric.result()
    assert result == pytest.approx(
        {
            "f1_micro": f1_score(true, predicted, average="micro", zero_division=0),
            "f1_macro": f1_score(true, predicted, average="macro", zero_division=0),
            "accuracy": accuracy_score(true, predicted),
        }
    )
    assert all(type(value) is float for value in result.values())
