"""The example with a control of its own: it stops when the labels drift, and hears what was posted."""

from tests.examples.in_process import run_example
from tests.paths import ROOT

SIZE = 80


def test_it_stops_once_the_labels_have_drifted_out_of_the_posted_bounds(tmp_path):
    told, printed = run_example("online_control.py", tmp_path)
    assert 200 < told["step"] < 240
    assert "are 1, and not 25% to 75%" in told["stopped"]
    assert "label_balance" in printed


def test_a_cut_run_goes_on_and_stops_at_the_same_step(tmp_path):
    whole, _ = run_example("online_control.py", tmp_path / "whole")
    run_example("online_control.py", tmp_path / "cut", steps=100)
    again, _ = run_example("online_control.py", tmp_path / "cut")
    assert again == whole


def test_it_has_80_lines_at_most():
    file = ROOT / "examples" / "online_control.py"
    assert len(file.read_text(encoding="utf-8").splitlines()) <= SIZE
