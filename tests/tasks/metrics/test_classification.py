import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.classification import ClassificationMetric, MultiLabelMetric


def metric_of(classes):
    return ClassificationMetric(Labels([str(number) for number in range(classes)]))


def measured(classes, true, predicted, batches=1):
    metric = metric_of(classes)
    logits = np.eye(classes, dtype=np.float32)[np.array(predicted, int)]
    for part in np.array_split(np.arange(len(true)), batches):
        metric.update(logits[part], {"labels": np.array(true, int)[part]})
    return metric.result()


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


LABELS = Labels(["x", "y", "z"])


def test_several_labels_with_another_threshold():
    metric = MultiLabelMetric(LABELS, threshold=0.1)
    metric.update([np.array([0.2, 0.1, 0.0])], {"labels": np.array([[1, 0, 0]])})
    assert metric.result() == pytest.approx({"f1_micro": 1.0, "f1_macro": 1 / 3, "accuracy": 1.0})


@settings(max_examples=150)
@given(st.data())
def test_several_labels_against_scikit_learn(data):
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
