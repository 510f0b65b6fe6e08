"""The examples run as their docstrings say."""

import ast
import subprocess
import sys

from tests.paths import ROOT

EXAMPLES = ROOT / "examples"


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
    assert drawn == (EXAMPLES.parent / "docs" / "onion.svg").read_text(encoding="utf-8")


def test_two_tasks_learn_together_and_go_on_where_they_were(tmp_path):
    first = run("two_tasks.py", tmp_path)
    assert run("two_tasks.py", tmp_path) == first
    figures = ast.literal_eval(first.splitlines()[-1])
    assert figures["slope.error"] < 1
    assert 0 < figures["share.valley"] < 0.5
    assert len((EXAMPLES / "two_tasks.py").read_text(encoding="utf-8").splitlines()) <= 80
