import random

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.finetune.inference import evaluate, predict
from onion.tasks.finetune.run_files import read_json
from onion.tasks.multilabel import MultiLabel
from tests.tasks.arrays import features_of
from tests.tasks.helpers import BAD, GOOD, PLAIN, of_dev, write_jsonl, write_tsv

WORDS = {"good": GOOD, "bad": BAD}


def praises(count, seed):
    """Texts of plain words, and good or bad ones or both: (text, what it has)."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        kinds = [kind for kind in ("bad", "good") if chance.random() < 0.5]
        words = chance.choices(PLAIN, k=3) + [word for kind in kinds for word in chance.choices(WORDS[kind], k=2)]
        chance.shuffle(words)
        found.append((" ".join(words), ",".join(kinds)))
    return found


def test_labels_of_a_table(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "sad"), ("b", ""), ("c", " sad, dull ,sad"), ("d", "warm"), ("e", " ")])
    task = MultiLabel().fitted(path)
    assert task.labels.names == ("dull", "sad", "warm")
    examples = features_of(task, path, tokenizer)
    assert [example["marks"].tolist() for example in examples] == [[1], [], [0, 1], [2], []]
    batch = task.collate(examples[:], pad_id=0)
    assert batch["labels"].tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert batch["labels"].dtype == np.float32
    assert task.baseline(examples) == {"majority_accuracy": 2 / 5}  # no label at all, twice
    unlabelled = features_of(task, path, tokenizer, labelled=False)
    assert "labels" not in task.collate(unlabelled[:], pad_id=0)


def test_labels_of_json_lines(tmp_path, tokenizer):
    rows = [["x, y", 7], [], "x, y", 7, "", ["7", " 7 "]]
    path = write_jsonl(tmp_path / "a.jsonl", *({"text_a": "a", "label": label} for label in rows))
    task = MultiLabel(separator=";").fitted(path)
    assert task.labels.names == ("7", "x, y")
    marks = [example["marks"].tolist() for example in features_of(task, path, tokenizer)]
    assert marks == [[0, 1], [], [1], [0], [], [0]]


def test_examples_without_any_label_are_whole(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", ""), ("b", "")])
    examples = features_of(MultiLabel(labels=["x", "y"]), path, tokenizer)
    assert MultiLabel(labels=["x", "y"]).collate(examples[:], 0)["labels"].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("x,,y", "an empty name among the labels 'x,,y'; remove it"),
        (["x", ""], r"an empty name among the labels \['x', ''\]; remove it"),
        (["x", ["y"]], r"label is \['y'\], not a string"),
        ([True], "label is True, not a string"),
        (None, r"label is empty \(null\); fill it in or remove the row"),
        ("z", "the label 'z' is unknown; the training file has 'x', 'y'"),
    ],
)
def test_labels_that_do_not_do(tmp_path, tokenizer, label, told):
    path = write_jsonl(tmp_path / "a.jsonl", *({"text_a": "a", "label": each} for each in ("x", label)))
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {told}"):
        features_of(MultiLabel(labels=["x", "y"]), path, tokenizer)


def test_no_label_anywhere_is_nothing_to_learn(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv: no row has a label; there is nothing to learn"):
        MultiLabel().fitted(write_tsv(tmp_path / "a.tsv", [("a", ""), ("b", " ")]))


def test_labels_over_the_threshold_are_predicted():
    task = MultiLabel(labels=["x", "y", "z"], threshold=0.25)
    assert list(task.predictions([], [], [np.array([0.25, 0.2500004, 1.0]), np.zeros(3)])) == [
        {"labels": ["y", "z"], "probabilities": {"x": 0.25, "y": 0.25, "z": 1.0}},
        {"labels": [], "probabilities": {"x": 0.0, "y": 0.0, "z": 0.0}},
    ]


@pytest.fixture(scope="module")
def learned(learn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("multilabel")
    data = write_tsv(folder / "train.tsv", praises(160, seed=1)), write_tsv(folder / "dev.tsv", praises(70, seed=2))
    out, report = learn("multilabel", *data, passes=5)
    return out, data[1], report


def test_a_training_and_what_it_measures(learned, tmp_path):
    out, dev, report = learned
    assert report["dev.f1_micro"] > 0.8
    assert report["dev.accuracy"] > report["majority_accuracy"]
    found = evaluate(out, str(dev), report=tmp_path / "report")
    averages = read_json(tmp_path / "report", "report.json")["averages"]
    assert [averages[name]["f1"] for name in ("micro", "macro")] == pytest.approx(
        [found["f1_micro"], found["f1_macro"]]
    )
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
