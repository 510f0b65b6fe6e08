import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from sklearn.utils.class_weight import compute_class_weight

from onion.errors import DataError
from onion.tasks.classification import Classification
from onion.tasks.registry import get_task, recorded_task
from tests.tasks.helpers import write_tsv


class SimpleEncoder(paddle.nn.Layer):
    config = SimpleNamespace(hidden_size=4, hidden_dropout_prob=0.25, initializer_range=0.02)


@pytest.fixture
def data(tmp_path):
    return write_tsv(tmp_path / "a.tsv", [("a film", "bad"), ("a plot", "good"), ("the film", "good")])


def test_the_labels_are_those_of_the_training_file(data):
    task = Classification().fitted(data)
    assert (task.labels.names, task.pairs) == (("bad", "good"), False)
    assert recorded_task(json.loads(json.dumps(task.record())), "x") == task


def test_one_label_is_nothing_to_learn(tmp_path):
    with pytest.raises(DataError, match=r"one\.tsv: all rows have the label 'good'"):
        Classification().fitted(write_tsv(tmp_path / "one.tsv", [("a", "good"), ("b", "good")]))


def test_an_unknown_label_names_file_line_and_what_is_known(data, tmp_path, tokenizer):
    task = Classification().fitted(data)
    rows = list(task.rows(write_tsv(tmp_path / "b.tsv", [("a", "good"), ("a", "so so")]), labelled=True))
    with pytest.raises(
        DataError, match=r"b\.tsv:3: the label 'so so' is unknown; the training file has 'bad', 'good'$"
    ):
        task.features(rows, tokenizer, True, Counter())


def test_weights_of_labels_that_do_not_occur(data):
    with pytest.raises(DataError, match=r"class_weights: there is no label 'ugly' in .*, only 'bad', 'good'"):
        Classification(class_weights={"ugly": 2.0}).fitted(data)


def test_balanced_weights_are_those_of_scikit_learn(tmp_path):
    rows = [("a", "x")] * 6 + [("a", "y")] * 3 + [("a", "z")]
    path = write_tsv(tmp_path / "a.tsv", rows)
    fitted = Classification(class_weights="balanced").fitted(path)
    labels = [label for _, label in rows]
    expected = compute_class_weight("balanced", classes=np.array(["x", "y", "z"]), y=labels)
    assert dict(fitted.class_weights) == pytest.approx(dict(zip("xyz", expected, strict=True)))
    assert recorded_task(json.loads(json.dumps(fitted.record())), "x") == fitted
    known = Classification(class_weights="balanced", labels=["x", "y", "z", "new"]).fitted(path)
    assert known.class_weights["new"] == 1
    with pytest.raises(DataError, match="class_weights: 'balance' is not a mapping of labels to numbers >= 0, nor"):
        Classification(class_weights="balance")


def test_a_label_that_is_not_named_counts_1_so_the_others_may_count_nothing(data):
    assert Classification(class_weights={"bad": 0}).fitted(data).network(SimpleEncoder())._weights.tolist() == [0, 1]
    with pytest.raises(
        DataError, match=r"class_weights: every label of .*a\.tsv has the weight 0; there is nothing to learn"
    ):
        Classification(class_weights={"bad": 0, "good": 0}).fitted(data)


def test_labels_that_are_whole_numbers(tmp_path):
    data = write_tsv(tmp_path / "a.tsv", [("a film", "0"), ("a plot", "1")])
    task = get_task("classification", {"labels": [1, 0], "class_weights": {1: 2, "0": "5e-1"}}).fitted(data)
    assert (task.labels.names, dict(task.class_weights)) == (("1", "0"), {"1": 2.0, "0": 0.5})


def test_long_labels_are_told_in_part(tmp_path, tokenizer):
    label = "very " * 1000
    rows = [("a", f"{label} {number}") for number in range(20)]
    task = Classification().fitted(write_tsv(tmp_path / "a.tsv", rows))
    (row,) = task.rows(write_tsv(tmp_path / "b.tsv", [("a", label)]), labelled=True)
    with pytest.raises(DataError, match=r"b\.tsv:2: the label 'very .*\.\.\.' is unknown") as caught:
        task.features([row], tokenizer, True, Counter())
    assert len(str(caught.value)) < 700 + len(str(tmp_path))


def test_settings_of_the_loss_leave_the_features_alone(data):
    plain, other = Classification().fitted(data), Classification(class_weights={"bad": 3}, label_smoothing=0.1)
    assert plain.features_record() == other.fitted(data).features_record() != other.features_record()
    network = other.fitted(data).network(SimpleEncoder())
    assert (network._weights.tolist(), network._smoothing, network.dropout.p) == ([3.0, 1.0], 0.1, 0.25)


def test_a_baseline():
    examples = [{"label": label} for label in (0, 1, 2, 2, 1, 0)]
    assert Classification().baseline(examples) == {"majority_accuracy": 2 / 6}
