"""The setting ``loggers``: a Tracker for each, with files in the folder of the training and the settings."""

import json

import attrs
import pytest

from onion.errors import DataError
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.loggers import WRITERS, trackers
from onion.tasks.finetune.loop_settings import LOGGERS
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.settings import Settings
from tests.monitoring.writers.tools import in_tensorboard


def test_each_logger_has_its_writer(tmp_path):
    assert tuple(WRITERS) == LOGGERS
    assert [WRITERS[name](tmp_path).name for name in LOGGERS] == list(LOGGERS)


@pytest.mark.parametrize("kind", ["one task", "several"])
def test_a_tracker_is_given_the_settings_as_a_config_file_has_them(kind, tmp_path):
    task = {"task": "classification", "train": "a.tsv", "dev": "b.tsv"}
    more = {"loggers": "tensorboard, visualdl", "log_every": 3}
    settings = Settings(**task, **more) if kind == "one task" else MultiTaskSettings(tasks={"a": task}, **more)
    made = trackers(settings, tmp_path)
    assert [(each.name, each.every) for each in made] == [("tensorboard", 3), ("visualdl", 3)]
    assert all(each.settings == settings.as_file() for each in made)
    json.dumps(made[0].settings)


@pytest.mark.parametrize("loggers", ["tensorbord", "wandb,wandb", "", ["wandb", 1], 3, True])
def test_what_is_no_list_of_loggers_is_refused(loggers):
    with pytest.raises(DataError, match="loggers must be some of tensorboard, visualdl, wandb, mlflow, each once, got"):
        Settings(task="classification", train="a", dev="b", loggers=loggers)


def test_a_training_has_its_figures_in_the_log_and_in_the_curves(make_settings, tmp_path):
    settings = attrs.evolve(make_settings(passes=1, test_every=4, log_every=2), loggers=["tensorboard"])
    train(settings, tmp_path / "out", quiet=True)
    rows = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    assert all(row["gradient_norm"] > 0 and row["learning_rate"] >= 0 for row in rows)
    found = in_tensorboard(tmp_path / "out")
    logged = [(row["step"], name, row[name]) for row in rows for name in row if name not in ("step", "pass", "seconds")]
    assert [point[:2] for point in found.points] == [each[:2] for each in logged]
    assert [point[2] for point in found.points] == pytest.approx([each[2] for each in logged], rel=1e-6)
    assert "classification" in found.settings


def test_loggers_come_and_go_when_a_run_is_resumed(make_settings, tmp_path):
    for passes, loggers in [(1, ["visualdl"]), (1, ["tensorboard"]), (1, [])]:
        settings = make_settings(passes=passes, loggers=loggers, log_every=2)
        report = train(settings, tmp_path / "out", quiet=True).report
        assert report["step"] == 8
    assert {"visualdl", "tensorboard"} <= {path.name for path in (tmp_path / "out").iterdir()}
