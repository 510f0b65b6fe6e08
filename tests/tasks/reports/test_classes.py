"""Figures of classes, held against scikit-learn's ``classification_report``."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, classification_report

from onion.tasks.reports.classes import Classes

NAMES = ["a", "b", "c", "d"]


def as_sklearn(scores):
    return {name: {"f1-score" if figure == "f1" else figure: value for figure, value in each.items()}
            for name, each in scores.items()}  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), min_size=1, max_size=30))
def test_against_scikit_learn(pairs):
    true, predicted = zip(*pairs, strict=True)
    counts = [np.array([list(side).count(name) for name in NAMES]) for side in (true, predicted)]
    right = np.array([sum(one == other == name for one, other in pairs) for name in NAMES])
    classes = Classes(NAMES, right, *counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that do not occur
        report = classification_report(true, predicted, labels=NAMES, output_dict=True, zero_division=0)
    for name in NAMES:
        assert as_sklearn(classes.scores())[name] == pytest.approx(report[name])
    averages = as_sklearn(classes.averages())
    for name in ("macro", "weighted"):
        assert averages[name] == pytest.approx(report[f"{name} avg"])
    assert averages["micro"]["f1-score"] == pytest.approx(accuracy_score(true, predicted))


def test_a_table_of_the_classes():
    sheet = Classes(["x", "y"], np.array([1, 0]), np.array([2, 1]), np.array([1, 2])).sheet()
    assert sheet.columns == ["label", "precision", "recall", "f1", "support"]
    assert sheet.rows == [["x", 1.0, 0.5, pytest.approx(2 / 3), 2], ["y", 0.0, 0.0, 0.0, 1]]
