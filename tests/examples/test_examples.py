"""The examples run as their docstrings say, and those that the README lists have 80 lines at most."""

import ast
import re
import subprocess
import sys

import pytest

from tests.examples.in_process import EXAMPLES, run_example, saved_bits
from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
LISTED = re.findall(r"`(\w+\.py)`", README.split("## Examples")[1].split("\n## ")[0])


def test_the_readme_lists_examples():
    assert {"two_tasks.py", "gan_gaussians.py", "lr_search.py", "distillation.py"} <= set(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_it_has_80_lines_at_most(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 80


def run(name, *arguments):
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_ten_lines_draw_themselves_and_learn():
    told = run("ten_lines.py")
    assert told.startswith("Runner")
    first, *_, last = [float(line.split()[-1]) for line in told.splitlines() if line.startswith("pass")]
    assert last < first / 10


def test_the_run_with_a_nested_test_stops_itself_and_is_stopped_when_run_again(tmp_path):
    first = run("nested_test.py", tmp_path)
    assert "has not improved" in first
    assert run("nested_test.py", tmp_path) == first
    assert (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").count('"tester.error"') > 5


def test_the_picture_in_the_docs_is_that_of_the_example(tmp_path):
    run("nested_test.py", "--draw", tmp_path / "onion.svg")
    drawn = (tmp_path / "onion.svg").read_text(encoding="utf-8")
    assert drawn == (ROOT / "docs" / "onion.svg").read_text(encoding="utf-8")


def test_two_tasks_learn_together_and_go_on_where_they_were(tmp_path):
    first = run("two_tasks.py", tmp_path)
    assert run("two_tasks.py", tmp_path) == first
    figures = ast.literal_eval(first.splitlines()[-1])
    assert figures["slope.error"] < 1
    assert 0 < figures["share.valley"] < 0.5


def test_points_without_labels_help_a_mean_teacher(tmp_path):
    told, drawing = run_example("mean_teacher.py", tmp_path)
    assert told["example"] == "mean_teacher"
    assert min(told["student"], told["teacher"]) > told["alone"] + 0.02
    assert told["alone"] > 0.8
    assert "OutputsToBatch(field='teacher')" in drawing


def test_a_control_stops_once_the_labels_have_drifted_out_of_the_posted_bounds(tmp_path):
    told, printed = run_example("online_control.py", tmp_path / "whole")
    assert 200 < told["step"] < 240
    assert "are 1, and not 25% to 75%" in told["stopped"]
    assert "label_balance" in printed

    run_example("online_control.py", tmp_path / "cut", steps=100)
    again, _ = run_example("online_control.py", tmp_path / "cut")
    assert again == told


def test_a_watch_helps_after_the_change_and_a_cut_run_ends_with_the_same_bits(tmp_path):
    told, printed = run_example("online_drift.py", tmp_path / "whole")
    watched, plain = told["watched"], told["plain"]
    assert len(watched) == len(plain) == 6
    assert watched[:3] == plain[:3]
    assert watched[3] > plain[3] + 0.2
    assert "drift_detector" in printed

    run_example("online_drift.py", tmp_path / "cut", steps=160)
    again, _ = run_example("online_drift.py", tmp_path / "cut")
    assert again == told
    assert saved_bits(tmp_path / "cut" / "watched") == saved_bits(tmp_path / "whole" / "watched")
    assert run_example("online_drift.py", tmp_path / "cut")[0] == told
