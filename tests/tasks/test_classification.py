import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from sklearn.utils.class_weight import compute_class_weight

from onion.errors import DataError
from onion.models.encoder import Encoder
from onion.tasks.batches import batch_of
from onion.tasks.classification import Classification, Classifier
from onion.tasks.data.features.examples import Examples
from onion.tasks.registry import get_task, recorded_task
from tests.tasks.helpers import HIDDEN, VOCAB, write_tsv


class SimpleEncoder(paddle.nn.Layer):
    config = SimpleNamespace(hidden_size=4, hidden_dropout_prob=0.25, initializer_range=0.02)


@pytest.fixture
def network(encoder_folder):
    paddle.seed(3)
    network = Classifier(Encoder.from_pretrained(encoder_folder), 3)
    network.eval()
    return network


@pytest.fixture
def examples():
    chance = np.random.default_rng(1)
    texts = [chance.integers(5, len(VOCAB), length) for length in (3, 9, 5, 24, 3, 12)]
    labels = [0, 1, 2, 2, 1, 0]
    made = [
        {"row": 0, "ids": ids, "types": np.zeros_like(ids), "label": label}
        for ids, label in zip(texts, labels, strict=True)
    ]
    return Examples.of(made)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 4.0]])
def test_cost_with_weights_and_smoothing_by_its_definition(encoder_folder, weights, smoothing):
    network = Classifier(Encoder.from_pretrained(encoder_folder), 3, weights=weights, smoothing=smoothing)
    values = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -2.0], [0.1, 0.2, 0.3]])
    labels = np.array([2, 0, 1])
    targets = (1 - smoothing) * np.eye(3)[labels] + smoothing / 3
    each = -(targets * (values - np.log(np.exp(values).sum(axis=1, keepdims=True)))).sum(axis=1)
    found = network.loss(paddle.to_tensor(values, dtype="float32"), {"labels": paddle.to_tensor(labels)})
    counted = None if weights is None else np.array(weights)[labels]
    assert float(found) == pytest.approx(np.average(each, weights=counted), rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_batch_in_which_nothing_counts_costs_and_teaches_nothing(encoder_folder, smoothing):
    network = Classifier(Encoder.from_pretrained(encoder_folder), 2, weights=[0.0, 1.0], smoothing=smoothing)
    logits = paddle.to_tensor([[0.5, -1.0], [3.0, 0.0]], stop_gradient=False)
    loss = network.loss(logits, {"labels": paddle.to_tensor([0, 0])})
    loss.backward()
    assert float(loss) == 0
    assert logits.grad.tolist() == [[0, 0], [0, 0]]


def test_decoded_are_probabilities(network):
    (found,) = network.decode(paddle.to_tensor([[0.0, np.log(3.0), -1e4]]), {})
    np.testing.assert_allclose(found, [0.25, 0.75, 0.0], atol=1e-6)


def test_every_parameter_gets_a_gradient(network, examples):
    batch = batch_of(examples[:])
    network.loss(network(batch), {"labels": paddle.to_tensor(batch["labels"])}).backward()
    assert [path for path, parameter in network.named_parameters() if parameter.grad is None] == []


def test_the_head_starts_small_and_drops_what_the_encoder_drops(network, encoder_folder):
    weight = network.classifier.weight.numpy()
    assert weight.shape == (HIDDEN, 3)
    assert 0.01 < weight.std() < 0.03  # initializer_range 0.02
    assert network.dropout.p == network.encoder.config.hidden_dropout_prob == 0.1
    assert Classifier(Encoder.from_pretrained(encoder_folder), 2, dropout=0.0).dropout.p == 0.0


def test_dropout_in_training_only(network, examples):
    batch = batch_of(examples[:])
    assert (network(batch).numpy() == network(batch).numpy()).all()
    network.train()
    assert (network(batch).numpy() != network(batch).numpy()).any()


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


def test_a_baseline(examples):
    assert Classification().baseline(examples) == {"majority_accuracy": 2 / 6}
