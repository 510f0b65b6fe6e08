import csv
import signal
from xml.etree import ElementTree

import pytest

from onion import LearningRateFinder
from onion.errors import DataError
from onion.tasks.tuning.curve import Curve, curves
from onion.tasks.tuning.rate_search import find_learning_rate
from tests.tasks.helpers import snapshot


def test_a_rate_is_suggested_and_the_curve_is_written(make_settings, tmp_path):
    items = {"gradient_accumulation_steps": 2, "ema_decay": 0.9, "early_stopping": 1, "loggers": ["tensorboard"]}
    settings = make_settings(**items, warmup_steps=5, lora_rank=2, lora_targets="*")
    found = find_learning_rate(settings, tmp_path / "out", last=10, steps=60, quiet=True).report
    assert found["diverged"]
    assert 3e-4 < found["learning_rate"] < 0.3
    with (tmp_path / "out" / "lr_find.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found["steps"] < 60
    assert sorted(snapshot(tmp_path / "out")) == ["lr_find.csv", "lr_find.svg"]
    drawn = ElementTree.parse(tmp_path / "out" / "lr_find.svg").getroot()
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [len(rows)] * 2


def test_several_tasks_are_refused_and_a_file_is_no_folder(make_settings, tmp_path):
    with pytest.raises(DataError, match="follows the loss of one task"):
        find_learning_rate({"tasks": {"a": {"task": "masked-lm", "train": "a.txt"}}}, tmp_path / "none")
    (tmp_path / "out").touch()
    with pytest.raises(DataError, match="out is a file; choose a folder"):
        find_learning_rate(make_settings(), tmp_path / "out")


def test_a_curve_without_a_range_or_with_nan_can_be_drawn():
    drawn = curves([0.1, 1, 10], [Curve("a & b", [1, float("nan"), 1], "red")], "rate")
    points = ElementTree.fromstring(drawn).find("{http://www.w3.org/2000/svg}polyline").get("points")
    assert len(points.split()) == 2


def test_a_signal_ends_the_test_and_nothing_is_written(make_settings, tmp_path, monkeypatch):
    see = LearningRateFinder._add

    def see_and_interrupt(self, loss):
        see(self, loss)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(LearningRateFinder, "_add", see_and_interrupt)
    found = find_learning_rate(make_settings(), tmp_path / "out", quiet=True)
    assert (found.signal, found.report["steps"]) == (signal.SIGINT, 1)
    assert not (tmp_path / "out").exists()
