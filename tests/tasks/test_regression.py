import random
import sys

import numpy as np
import pytest
from scipy.stats import pearsonr

from onion.errors import DataError, OnionError
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import evaluate, predict
from onion.tasks.finetune.run_files import read_json
from onion.tasks.regression import Regression
from tests.tasks.arrays import features_of
from tests.tasks.helpers import DATA, GOOD, PLAIN, needs_data, of_dev, write_tsv

STS_B = DATA / "glue" / "sts-b"


def scores(count, seed):
    """Texts of six words, and how many of them are good."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        good = chance.randrange(7)
        words = chance.choices(GOOD, k=good) + chance.choices(PLAIN, k=6 - good)
        chance.shuffle(words)
        found.append((" ".join(words), f"{good / 2:.3f}"))
    return found


def test_numbers_become_float32_labels(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a film", "2.5"), ("a", "-1e3"), ("plot", "4")])
    task = Regression().fitted(path)
    assert task.pairs is False
    batch = task.collate(features_of(task, path, tokenizer)[:], pad_id=0)
    assert batch["labels"].tolist() == [2.5, -1000.0, 4.0]
    assert batch["labels"].dtype == np.float32
    assert task.baseline([{"label": 1.0}, {"label": 2.0}, {"label": 6.0}]) == {"label_variance": pytest.approx(14 / 3)}


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("", "label is '', not a number"),
        ("high", "label is 'high', not a number"),
        ("nan", "label is 'nan', not a number"),
        ("-2e18", r"the absolute value of label, -2e\+18, is above 1e\+18; scale the labels"),
    ],
)
def test_labels_that_do_not_do(tmp_path, tokenizer, cell, told):
    path = write_tsv(tmp_path / "a.tsv", [("a", "1"), ("b", cell)])
    task = Regression().fitted(path)
    with pytest.raises(DataError, match=rf"a\.tsv:3: {told}"):
        features_of(task, path, tokenizer)


@pytest.fixture(scope="module")
def learned(learn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("regression")
    data = write_tsv(folder / "train.tsv", scores(160, seed=1)), write_tsv(folder / "dev.tsv", scores(70, seed=2))
    out, report = learn("regression", *data, passes=6, options={"max_length": 12, "dropout": 0.0})
    return out, data[1], report


def test_a_training_and_what_it_measures(learned, tmp_path):
    out, dev, report = learned
    assert report["dev.pearson"] > 0.8
    assert report["dev.mean_squared_error"] < report["label_variance"]
    found = evaluate(out, str(dev), report=tmp_path / "report")
    residuals = read_json(tmp_path / "report", "report.json")["residuals"]
    assert residuals["root_mean_square"] ** 2 == pytest.approx(found["mean_squared_error"], rel=1e-4)
    assert found.pop("rows") == 70
    assert found == pytest.approx(of_dev(report))
    values = [row["value"] for row in predict(out, str(dev))]
    true = [float(label) for _, label in scores(70, seed=2)]
    assert pearsonr(values, true)[0] == pytest.approx(report["dev.pearson"], abs=1e-5)


def test_scipy_is_asked_for_before_anything_is_written(make_settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)  # as if it were not installed
    data = str(write_tsv(tmp_path / "a.tsv", scores(8, seed=3)))
    with pytest.raises(OnionError, match=r"scipy: pip install 'onion-paddle\[metrics\]'"):
        train(make_settings(task="regression", train=data, dev=data), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@needs_data
def test_sts_b_is_read_whole(tokenizer):
    for name, count in (("train.tsv", 5749), ("dev.tsv", 1500)):
        task = Regression().fitted(STS_B / name)
        assert task.pairs is True
        values = [task.targets(row)["label"] for row in task.rows(STS_B / name, labelled=True)]
        assert len(values) == count
        assert (min(values), max(values)) == (0.0, 5.0)
