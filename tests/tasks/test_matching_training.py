import random
from pathlib import Path

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import evaluate, predict, predict_lines, predict_texts
from tests.tasks.helpers import BAD, GOOD, of_dev, write_tsv

JUDGED = ("text_a", "text_b", "label")
ASKED = (*JUDGED, "qid")
PAIRS = ("text_a", "text_b", "text_b_neg")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files in which good second texts fit; a question has a good one and two bad ones, in no order."""
    folder, chance = tmp_path_factory.mktemp("matching"), random.Random(5)
    found = {}
    for name, count in (("train", 60), ("dev", 25)):
        asked, pairs = [], []
        for question in range(count):
            good, *bad = (chance.choice(words) + " film" for words in (GOOD, BAD, BAD))
            rows = [("was it", good, "1"), *[("was it", text, "0") for text in bad]]
            chance.shuffle(rows)
            asked += [(*row, f"q{question}") for row in rows]
            pairs += [("was it", good, text) for text in bad]
        found[f"{name} asked"] = str(write_tsv(folder / f"{name}_asked.tsv", asked, ASKED))
        found[f"{name} judged"] = str(write_tsv(folder / f"{name}_judged.tsv", [row[:3] for row in asked], JUDGED))
        found[f"{name} pairs"] = str(write_tsv(folder / f"{name}_pairs.tsv", pairs, PAIRS))
    return found


@pytest.fixture(scope="module")
def learn(make_settings, files, tmp_path_factory):
    """Train and return the folder and the report."""

    def run(train_on, dev_on):
        out = tmp_path_factory.mktemp("runs") / "out"
        asked = make_settings(task="matching", train=files[train_on], dev=files[dev_on], passes=6)
        return out, train(asked, out).report

    return run


@pytest.mark.parametrize(
    ("train_on", "dev_on", "names", "examples"),
    [
        ("train judged", "dev judged", {"accuracy", "f1"}, 75),
        ("train asked", "dev asked", {"accuracy", "f1", "mrr", "map"}, 75),
        ("train judged", "dev asked", {"accuracy", "f1", "mrr", "map"}, 75),
        ("train pairs", "dev pairs", {"accuracy"}, 50),
        ("train pairs", "dev judged", {"accuracy"}, 75),
        ("train pairs", "dev asked", {"accuracy", "mrr", "map"}, 75),
    ],
)
def test_trainings_and_what_they_measure(learn, files, train_on, dev_on, names, examples):
    out, report = learn(train_on, dev_on)
    found = evaluate(out, files[dev_on])
    assert found.pop("rows") == examples
    assert found == of_dev(report)
    assert found.keys() == names
    assert found["mrr" if train_on == "train asked" else "accuracy"] > 0.8  # what the best checkpoint is chosen by
    assert ("majority_accuracy" in report) == (train_on != "train pairs")


@pytest.fixture(scope="module")
def in_pairs(learn):
    return learn("train pairs", "dev pairs")[0]


def test_scores_come_in_the_order_of_the_file_and_are_those_of_the_figures(in_pairs, files, tmp_path):
    rows = [line.split("\t") for line in Path(files["dev pairs"]).read_text().splitlines()[1:]]
    predicted = []
    for column in (1, 2):
        path = write_tsv(tmp_path / f"{column}.tsv", [(row[0], row[column]) for row in rows], ("text_a", "text_b"))
        found = list(predict(in_pairs, str(path)))
        assert [row["index"] for row in found] == list(range(50))
        predicted.append([row["score"] for row in found])
    better, worse = predicted
    assert np.mean(np.array(better) > worse) == pytest.approx(evaluate(in_pairs, files["dev pairs"])["accuracy"])
    lines = [f"{row[0]}\t{row[2]}\n".encode() for row in rows]
    assert [row["score"] for row in predict_lines(in_pairs, lines)] == pytest.approx(worse, abs=1e-5)
    assert [row["score"] for row in predict(in_pairs, files["dev pairs"])] == pytest.approx(better, abs=1e-5)


def test_single_texts_cannot_be_matched(in_pairs):
    with pytest.raises(DataError, match="trained on pairs of texts"):
        list(predict_texts(in_pairs, ["a film"]))
