import csv
import json
import sys

import pytest

from onion.errors import CheckpointError, DataError, OnionError
from onion.tasks.finetune.config_file import read_config, resolve
from onion.tasks.finetune.fine_tune import train
from onion.tasks.tuning.results import folder_of
from onion.tasks.tuning.tune import tune

SEARCH = {"learning_rate": "1e-4..1e-2:log", "batch_size": [16, 32]}


@pytest.fixture(scope="module")
def settings(make_settings):
    return make_settings(passes=1)


@pytest.fixture(scope="module")
def searched(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "out"
    return folder, tune(settings, SEARCH, folder, trials=3, quiet=True)


def table(folder):
    return json.loads((folder / "tune.json").read_text())["table"]


def test_each_trial_is_a_run_and_the_best_is_told(searched):
    folder, found = searched
    rows = table(folder)
    assert [row["trial"] for row in rows] == [0, 1, 2]
    assert all(1e-4 <= row["learning_rate"] <= 1e-2 and row["batch_size"] in (16, 32) for row in rows)
    assert len({row["learning_rate"] for row in rows}) == 3
    best = max(rows, key=lambda row: row["dev.accuracy"])
    assert (found.report["trial"], found.report["dev.accuracy"]) == (best["trial"], best["dev.accuracy"])
    assert (found.report["trials"], found.report["pruned"], found.report["failed"], found.signal) == (3, 0, 0, None)
    assert resolve(read_config(folder_of(folder, 2) / "settings.json")).learning_rate == rows[2]["learning_rate"]
    with (folder / "trials.csv").open() as file:
        assert [row["batch_size"] for row in csv.DictReader(file)] == [str(row["batch_size"]) for row in rows]


def test_the_best_settings_give_the_best_figure_again(searched, tmp_path):
    folder, found = searched
    assert (
        train(resolve(read_config(folder / "best.json")), tmp_path / "out").report["dev.accuracy"]
        == (found.report["dev.accuracy"])
    )


def test_a_finished_search_goes_on_with_more_trials_as_one_of_that_many(searched, settings, tmp_path):
    folder, _ = searched
    whole = tune(settings, SEARCH, tmp_path / "whole", trials=4, quiet=True)
    more = tune(settings, SEARCH, folder, trials=4, quiet=True)
    assert table(folder) == table(tmp_path / "whole")
    assert (more.report["trials"], more.report["params"]) == (4, whole.report["params"])


def test_another_search_is_refused_in_the_folder(searched, settings):
    folder, _ = searched
    with pytest.raises(CheckpointError, match=r"was begun with something else .*batch_size.* there"):
        tune(settings, {"learning_rate": "1e-4..1e-2:log"}, folder, trials=4)
    with pytest.raises(CheckpointError, match=r"holds run\.json of something else"):
        tune(settings, SEARCH, folder_of(folder, 0), trials=4)


def test_a_training_that_diverges_is_a_failed_trial(make_settings, tmp_path):
    settings = make_settings(passes=1, log_every=1, warmup_ratio=0.0)
    search = {"learning_rate": [1e-3, 1e30]}
    assert tune(settings, search, tmp_path / "out", trials=4, quiet=True).report["params"] == {"learning_rate": 1e-3}
    failed = [row for row in table(tmp_path / "out") if row["state"] == "fail"]
    assert failed
    assert all(row["learning_rate"] == 1e30 and "loss" in row["error"] for row in failed)
    with pytest.raises(OnionError, match=r"none of 1 trials was completed; .*trials.csv tells why"):
        tune(settings, {"learning_rate": [1e30, 2e30]}, tmp_path / "none", trials=1, quiet=True)


def test_settings_that_do_not_go_together_end_the_search_with_the_trial(make_settings, tmp_path):
    settings = make_settings(passes=1, test_every=1000)
    with pytest.raises(DataError, match=r"dev\.accuracy was never reported; set test_every to fewer steps"):
        tune(settings, SEARCH, tmp_path / "out", trials=1, quiet=True)


@pytest.mark.parametrize(
    ("more", "told"),
    [({"trials": 0}, "trials must be an integer >= 1, got 0"), ({"pruner": "axe"}, "pruner must be one of median")],
)
def test_arguments_are_checked_before_anything_is_written(settings, tmp_path, more, told):
    with pytest.raises(DataError, match=told):
        tune(settings, SEARCH, tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()


def test_a_damaged_study_is_named(settings, searched, tmp_path):
    tune(settings, SEARCH, tmp_path / "out", trials=1, quiet=True)
    (tmp_path / "out" / "study.db").write_bytes(b"x" * 5000)
    with pytest.raises(CheckpointError, match=r"study\.db: cannot be read or written as a study of Optuna"):
        tune(settings, SEARCH, tmp_path / "out", trials=2, quiet=True)


def test_without_optuna_the_extra_is_named(settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(OnionError, match=r"pip install 'onion-paddle\[tune\]'"):
        tune(settings, SEARCH, tmp_path / "out")
