"""The example of a mean teacher: it helps, and goes on to the same bits."""

import pytest

from tests.abilities import needs_draws_again
from tests.examples.in_process import EXAMPLES, run_example, saved_bits


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mean_teacher") / "whole"
    return folder, *run_example("mean_teacher.py", folder)


def test_it_is_short():
    assert len((EXAMPLES / "mean_teacher.py").read_text(encoding="utf-8").splitlines()) <= 80


def test_points_without_labels_help(whole):
    _, told, drawing = whole
    assert told["example"] == "mean_teacher"
    assert min(told["student"], told["teacher"]) > told["alone"] + 0.02
    assert told["alone"] > 0.8
    assert "OutputsToBatch(field='teacher')" in drawing


@needs_draws_again
def test_a_run_that_was_stopped_comes_to_the_same_bits(whole, tmp_path):
    folder, told, _ = whole
    run_example("mean_teacher.py", tmp_path, steps=450)
    assert saved_bits(tmp_path) != saved_bits(folder)
    again, _ = run_example("mean_teacher.py", tmp_path)
    assert saved_bits(tmp_path) == saved_bits(folder)
    assert again == told
    assert any(name.startswith("moving_average/") for name in saved_bits(folder))
