"""The forgetting matrix: read from a log, as figures, as a table and as a picture."""

import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from onion import DataError, Logger, Runner, RunnerItem, TaskData, TaskSampler, Tester
from onion.monitoring.forgetting import ForgettingMatrix, forgetting
from onion.multitask.stages import Stages
from onion.testing import Batches
from tests.multitask.test_task_sampler import data

FIGURES = {"mask": "mask.accuracy", "capital": "capital.loss", "order": "order.accuracy"}


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path):
    """Three stages; order comes in at the last, though it is tested before."""
    return written(
        tmp_path / "metrics.jsonl",
        [
            {"pass": 0, "done.mask": 5, "done.capital": 0, "done.order": 0},
            {"pass": 0, "mask.accuracy": 0.1, "done.mask": 9},
            {"pass": 0, "mask.accuracy": 0.5, "capital.loss": 0.9, "order.accuracy": 0.5},
            {"pass": 1, "mask.accuracy": 0.75, "capital.loss": 0.25, "order.accuracy": 0.5, "done.capital": 3},
            {"pass": 2, "mask.accuracy": 0.625, "capital.loss": 0.5, "order.accuracy": 1.0, "done.order": 1},
        ],
    )


def test_the_last_test_in_a_stage_counts_from_the_stage_in_which_a_task_comes_in(log):
    matrix = forgetting(log, FIGURES, less_is_better=["capital"])
    assert matrix.figures.tolist() == [[0.5, 0.9, 0.5], [0.75, 0.25, 0.5], [0.625, 0.5, 1.0]]
    assert matrix.entered == [0, 1, 2]
    lost, gained = matrix.forgetting(), matrix.backward_transfer()
    assert (lost["mask"], gained["mask"]) == (0.125, 0.125)
    assert (lost["capital"], gained["capital"]) == (0.25, -0.25)
    assert math.isnan(lost["order"])
    assert math.isnan(gained["order"])


def test_the_table_has_a_line_for_each_stage_and_measure(log):
    assert forgetting(log, FIGURES, less_is_better=["capital"]).table().splitlines() == [
        "stage               mask  capital  order",
        "1                    0.5      0.9    0.5",
        "2                   0.75     0.25    0.5",
        "3                  0.625      0.5      1",
        "forgetting         0.125     0.25      -",
        "backward transfer  0.125    -0.25      -",
    ]


def test_the_picture_is_greenest_where_a_task_is_best(log):
    drawn = ET.fromstring(forgetting(log, FIGURES, less_is_better=["capital"]).svg())
    cells = {cell[0].text: cell[1].get("fill") for cell in drawn.iter("{http://www.w3.org/2000/svg}g")}
    assert len(cells) == 9
    best = {told for told, fill in cells.items() if fill == "rgb(76,175,80)"}
    assert best == {"mask after stage 2: 0.75", "capital after stage 2: 0.25", "order after stage 3: 1"}
    assert cells["capital after stage 1: 0.9"] == cells["mask after stage 1: 0.5"] == "rgb(234,245,234)"


def test_what_was_not_tested_is_left_out():
    matrix = ForgettingMatrix(["a", "<b>"], np.array([[0.5, math.nan], [0.5, 0.25]]), [0, 1])
    assert matrix.table().splitlines()[1] == "1                  0.5     -"
    drawn = ET.fromstring(matrix.svg())
    assert len([*drawn.iter("{http://www.w3.org/2000/svg}g")]) == 3
    assert matrix.forgetting()["a"] == 0


def test_a_log_without_counts_has_each_task_come_in_where_it_is_tested_first(tmp_path):
    rows = [{"pass": 0, "a.x": 1.0}, {"pass": 1, "a.x": 0.5, "b.x": 0.5}]
    assert forgetting(written(tmp_path / "m.jsonl", rows), {"a": "a.x", "b": "b.x"}).entered == [0, 1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"pass": 0, "b.x": 1}], "no row has 'a.x', the figure of the task 'a'; a Tester of the task"),
        ([{"pass": 0, "a.x": "much"}], r"m\.jsonl:1: 'pass' and 'a.x' must be finite numbers"),
        ([{"pass": 0}, {"pass": -1, "a.x": 1}], r"m\.jsonl:2: 'pass' and"),
        ([{"step": 0, "a.x": 1}], "there is no 'pass' in this object"),
    ],
    ids=["no figure", "no number", "no pass", "no log"],
)
def test_what_is_no_log_of_such_a_run_is_refused(rows, said, tmp_path):
    with pytest.raises(DataError, match=said):
        forgetting(written(tmp_path / "m.jsonl", rows), {"a": "a.x"})


class Share(RunnerItem):
    """A test whose figure is the number of batches that the outer run has drawn of a task."""

    def __init__(self, sampler, task):
        self.sampler, self.task = sampler, task

    def on_pass(self, state):
        yield
        state.report({"seen": self.sampler.log_values()[f"done.{self.task}"]})


def test_a_run_in_stages_tests_every_task_after_every_stage(tmp_path):
    sampler = TaskSampler({name: TaskData(data(3)) for name in "abc"}, Stages(dict.fromkeys("abc", 9), keep=2))
    tests = [Tester(Runner(Share(sampler, name), Batches(1)), name=name) for name in "abc"]
    Runner(Logger(tmp_path / "metrics.jsonl"), *tests, sampler).run()
    matrix = forgetting(tmp_path / "metrics.jsonl", {name: f"{name}.seen" for name in "abc"})
    assert matrix.figures.tolist() == [[5, 0, 0], [7, 7, 0], [9, 9, 9]]
    assert matrix.entered == [0, 1, 2]
    assert matrix.backward_transfer()["a"] == 4
