import json
import random
from collections import Counter

import numpy as np
import paddle
import pytest

from onion.errors import DataError
from onion.models.encoder import Encoder
from onion.tasks.data.features.examples import Examples
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import evaluate, predict
from onion.tasks.multilabel import MultiLabel, MultiLabelClassifier
from onion.tasks.registry import get_task
from tests.tasks.helpers import BAD, GOOD, HIDDEN, PLAIN, of_dev, write_tsv


def praises(count, seed):
    """Texts of plain words, and good or bad ones or both: (text, what it has)."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        kinds = [kind for kind in ("bad", "good") if chance.random() < 0.5]
        words = chance.choices(PLAIN, k=3) + [word for kind in kinds for word in chance.choices(_WORDS[kind], k=2)]
        chance.shuffle(words)
        found.append((" ".join(words), ",".join(kinds)))
    return found


_WORDS = {"good": GOOD, "bad": BAD}


def examples_of(task, path, tokenizer):
    return Examples.of(task.features(list(task.rows(path, labelled=True)), tokenizer, True, Counter()))


# -- from file to batch ------------------------------------------------------------------------------------------------


def test_labels_of_a_table(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "sad"), ("b", ""), ("c", " sad, dull ,sad"), ("d", "warm"), ("e", " ")])
    task = MultiLabel().fitted(path)
    assert task.labels.names == ("dull", "sad", "warm")
    examples = examples_of(task, path, tokenizer)
    assert [example["marks"].tolist() for example in examples] == [[1], [], [0, 1], [2], []]
    batch = task.collate(examples[:], pad_id=0)
    assert batch["labels"].tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert batch["labels"].dtype == np.float32
    assert task.baseline(examples) == {"majority_accuracy": 2 / 5}  # no label at all, twice
    unlabelled = task.features(list(task.rows(path, labelled=False)), tokenizer, False, Counter())
    assert "labels" not in task.collate(Examples.of(unlabelled)[:], pad_id=0)


def test_labels_of_json_lines(tmp_path, tokenizer):
    rows = [["x, y", 7], [], "x, y", 7, "", ["7", " 7 "]]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text_a": "a", "label": label}) + "\n" for label in rows))
    task = MultiLabel(separator=";").fitted(path)
    assert task.labels.names == ("7", "x, y")
    assert [example["marks"].tolist() for example in examples_of(task, path, tokenizer)] == [
        [0, 1],
        [],
        [1],
        [0],
        [],
        [0],
    ]


def test_examples_without_any_label_are_whole(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", ""), ("b", "")])
    examples = examples_of(MultiLabel(labels=["x", "y"]), path, tokenizer)
    assert MultiLabel(labels=["x", "y"]).collate(examples[:], 0)["labels"].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("x,,y", "an empty name among the labels 'x,,y'; take it out"),
        (["x", ""], r"an empty name among the labels \['x', ''\]; take it out"),
        (["x", ["y"]], r"label is \['y'\], not a text"),
        ([True], "label is True, not a text"),
        (None, "label is None, not a text"),
        ("z", "the label 'z' is none of those that are learned: 'x', 'y'"),
    ],
)
def test_labels_that_do_not_do(tmp_path, tokenizer, label, told):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text_a": "a", "label": each}) + "\n" for each in ("x", label)))
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {told}"):
        examples_of(MultiLabel(labels=["x", "y"]), path, tokenizer)


def test_no_label_anywhere_is_nothing_to_learn(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv: no row has a label; there is nothing to learn"):
        MultiLabel().fitted(write_tsv(tmp_path / "a.tsv", [("a", ""), ("b", " ")]))


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"separator": ""}, "separator must be a text.*, got ''"),
        ({"separator": False}, "separator must be a text or a whole number, got False; what YAML or JSON takes for"),
        ({"threshold": 1.0}, "threshold must be a number from 0 and below 1, got 1.0"),
        ({"threshold": "high"}, "threshold must be a number from 0.*, got 'high'"),
    ],
)
def test_settings_that_do_not_do(setting, told):
    with pytest.raises(DataError, match=f"multilabel: {told}"):
        get_task("multilabel", setting)
    assert MultiLabel(separator=1) == MultiLabel(separator="1")


# -- learning ----------------------------------------------------------------------------------------------------------


def test_cost_is_the_mean_binary_cross_entropy(encoder_folder):
    network = MultiLabelClassifier(Encoder.from_pretrained(encoder_folder), 3)
    values = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, -40.0]])
    labels = np.array([[1, 0, 1], [0, 1, 1]], np.float32)
    logits = paddle.to_tensor(values, dtype="float32", stop_gradient=False)
    loss = network.loss(logits, {"labels": paddle.to_tensor(labels)})
    loss.backward()
    each = np.logaddexp(0, values) - labels * values  # -log of what the truth was given
    assert loss.shape == []
    assert float(loss) == pytest.approx(each.mean(), rel=1e-5)
    np.testing.assert_allclose(logits.grad.numpy(), (1 / (1 + np.exp(-values)) - labels) / 6, atol=1e-6)
    assert network.classifier.weight.shape == [HIDDEN, 3]


def test_decoded_are_probabilities_of_their_own(encoder_folder):
    network = MultiLabelClassifier(Encoder.from_pretrained(encoder_folder), 3)
    (found,) = network.decode(paddle.to_tensor([[0.0, np.log(3.0), -1e4]]), {})
    np.testing.assert_allclose(found, [0.5, 0.75, 0.0], atol=1e-6)


def test_labels_over_the_threshold_are_predicted():
    task = MultiLabel(labels=["x", "y", "z"], threshold=0.25)
    assert list(task.predictions([], [], [np.array([0.25, 0.2500004, 1.0]), np.zeros(3)])) == [
        {"labels": ["y", "z"], "probabilities": {"x": 0.25, "y": 0.25, "z": 1.0}},
        {"labels": [], "probabilities": {"x": 0.0, "y": 0.0, "z": 0.0}},
    ]


@pytest.fixture(scope="module")
def learned(make_settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("multilabel")
    data = write_tsv(folder / "train.tsv", praises(160, seed=1)), write_tsv(folder / "dev.tsv", praises(70, seed=2))
    asked = make_settings(task="multilabel", train=str(data[0]), dev=str(data[1]), passes=5)
    return folder / "out", data[1], train(asked, folder / "out").report


def test_a_training_and_what_it_measures(learned):
    out, dev, report = learned
    assert report["dev.f1_micro"] > 0.8
    assert report["dev.accuracy"] > report["majority_accuracy"]
    found = evaluate(out, str(dev))
    assert found.pop("rows") == 70
    assert found == of_dev(report)
    predicted = [",".join(row["labels"]) for row in predict(out, str(dev))]
    right = [said == true for said, (_, true) in zip(predicted, praises(70, seed=2), strict=True)]
    assert sum(right) / 70 == pytest.approx(report["dev.accuracy"])


def test_another_threshold_after_training(learned):
    out, dev, _ = learned
    for row in predict(out, str(dev), {"threshold": 0.9}):
        assert row["labels"] == [name for name, value in row["probabilities"].items() if value > 0.9]
    assert evaluate(out, str(dev), {"threshold": 0.999999})["f1_micro"] < evaluate(out, str(dev))["f1_micro"]


def test_predictions_come_in_the_order_of_the_file(learned, tmp_path):
    out, _, _ = learned
    texts = [(text,) for text, _ in praises(70, seed=2)]
    forwards = list(predict(out, str(write_tsv(tmp_path / "a.tsv", texts, ("text_a",)))))
    backwards = list(predict(out, str(write_tsv(tmp_path / "b.tsv", texts[::-1], ("text_a",)))))[::-1]
    assert [row["index"] for row in forwards] == list(range(70))
    for one, other in zip(forwards, backwards, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
