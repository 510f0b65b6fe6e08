import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from onion.errors import CheckpointError, DataError
from onion.tasks.finetune.config_file import read_config
from onion.tasks.tuning.cross_validation import cross_validate


@pytest.fixture(scope="module")
def settings(make_settings):
    return make_settings(passes=1)


@pytest.fixture(scope="module")
def validated(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds") / "out"
    return folder, cross_validate(settings, folder, folds=3, quiet=True)


def test_the_figures_are_means_and_deviations_over_the_folds(validated):
    folder, found = validated
    kept = json.loads((folder / "cross_validation.json").read_text())
    values = [fold["dev.accuracy"] for fold in kept["folds"]]
    assert len(values) == 3
    assert found.report["dev.accuracy"] == kept["dev.accuracy"] == fmean(values)
    assert found.report["dev.accuracy.std"] == kept["dev.accuracy.std"] == stdev(values)
    assert read_config(folder / "fold-2" / "settings.json")["dev"] == "2/3"


def test_each_row_is_predicted_by_the_training_that_was_tested_on_it(validated, settings):
    rows = [json.loads(line) for line in (validated[0] / "predictions.jsonl").read_text().splitlines()]
    assert sorted(row["line"] for row in rows) == list(range(2, 130))
    assert {row["file"] for row in rows} == {settings.train}
    gold = [line.split("\t")[1] for line in Path(settings.train).read_text(encoding="utf-8").splitlines()[1:]]
    for number, fold in enumerate(json.loads((validated[0] / "cross_validation.json").read_text())["folds"], 1):
        right = [row["label"] == gold[row["line"] - 2] for row in rows if row["fold"] == number]
        assert fmean(right) == pytest.approx(fold["dev.accuracy"])


def test_warnings_name_the_file_and_the_fold_once(make_settings, tmp_path, caplog):
    settings = make_settings(passes=1, options={"max_length": 3})
    cross_validate(settings, tmp_path / "out", folds=2, quiet=True)
    told = [record.message.split(": ")[0] for record in caplog.records if "longer than 3 tokens" in record.message]
    assert told == [name for fold in "12" for name in (settings.train, f"{settings.train} ({fold}/2)")]


def test_an_interrupted_one_goes_on_to_the_same_figures(validated, settings, tmp_path):
    folder, whole = validated
    kept = json.loads((folder / "cross_validation.json").read_text())
    (folder / "cross_validation.json").write_text(json.dumps({**kept, "folds": kept["folds"][:1]}))
    predictions = (folder / "predictions.jsonl").read_bytes()
    (folder / "predictions.jsonl").unlink()
    again = cross_validate(settings, folder, folds=3, quiet=True)
    assert {**again.report, "seconds": 0} == {**whole.report, "seconds": 0}
    assert (folder / "predictions.jsonl").read_bytes() == predictions


def test_other_folds_are_refused_in_the_folder(validated, settings):
    with pytest.raises(CheckpointError, match="folds 3 there, 4 here"):
        cross_validate(settings, validated[0], folds=4)


def test_settings_as_a_config_file_has_them_need_no_dev(settings, tmp_path):
    given = {name: value for name, value in settings.as_file().items() if name != "dev"}
    with pytest.raises(DataError, match="folds must be an integer >= 2, got 1"):
        cross_validate(given, tmp_path / "out", folds=1)
    with pytest.raises(DataError, match="cross-validation is of one task"):
        cross_validate({"tasks": {"a": {"task": "masked-lm", "train": "a.txt"}}}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
