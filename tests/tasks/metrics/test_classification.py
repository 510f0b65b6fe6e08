import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.classification import ClassificationMetric


def metric_of(classes):
    return ClassificationMetric(Labels([str(number) for number in range(classes)]))


def measured(classes, true, predicted, batches=1):
    metric = metric_of(classes)
    logits = np.eye(classes, dtype=np.float32)[np.array(predicted, int)]
    for part in np.array_split(np.arange(len(true)), batches):
        metric.update(logits[part], {"labels": np.array(true, int)[part]})
    return metric.result()


def test_two_labels_counted_by_hand():
    # label 1: 2 right, 1 wrongly predicted, 2 missed -> precision 2/3, recall 1/2, f1 4/7
    # label 0: 1 right, 2 wrongly predicted, 1 missed -> precision 1/3, recall 1/2, f1 2/5
    result = measured(2, true=[1, 1, 1, 1, 0, 0], predicted=[1, 1, 0, 0, 1, 0])
    # matthews: (2 * 1 - 1 * 2) / ... = 0
    assert result == pytest.approx({"accuracy": 3 / 6, "f1": 4 / 7, "f1_macro": (4 / 7 + 2 / 5) / 2, "matthews": 0})


def test_three_labels_counted_by_hand():
    # f1 of 0: 2*1/(1+2) = 2/3; of 1: 2*1/(2+1) = 2/3; of 2: it neither occurs nor is predicted
    result = measured(3, true=[0, 1, 1], predicted=[0, 1, 0])
    # matthews: (2 * 3 - (1 * 2 + 2 * 1)) / sqrt((9 - 5) * (9 - 5)) = 1/2
    assert result == pytest.approx({"accuracy": 2 / 3, "f1_macro": (2 / 3 + 2 / 3 + 0) / 3, "matthews": 1 / 2})


def f1(true, predicted, label):
    """Precision and recall, as every textbook has them; 0 where one of them has no meaning."""
    right = sum(t == p == label for t, p in zip(true, predicted, strict=True))
    said, there = predicted.count(label), true.count(label)
    precision, recall = right / said if said else 0.0, right / there if there else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def matthews(true, predicted):
    if {*true} == {*predicted} and len({*true}) == 1:
        return 0.0  # scikit-learn warns
    return matthews_corrcoef(true, predicted)


@settings(max_examples=200)
@given(st.data())
def test_against_the_textbook_and_scikit_learn(data):
    classes = data.draw(st.integers(2, 5))
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, classes - 1)] * 2), min_size=1, max_size=30))
    true, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    result = measured(classes, true, predicted, batches=data.draw(st.integers(1, len(pairs))))
    wanted = {
        "accuracy": sum(t == p for t, p in pairs) / len(pairs),
        "f1_macro": sum(f1(true, predicted, label) for label in range(classes)) / classes,
        "matthews": matthews(true, predicted),
    }
    assert result == pytest.approx(wanted | ({"f1": f1(true, predicted, 1)} if classes == 2 else {}))
    assert all(type(value) is float for value in result.values())
