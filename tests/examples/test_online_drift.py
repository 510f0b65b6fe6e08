"""The example that learns from a stream: its watch helps, it goes on where it was stopped, and tells the same."""

from tests.examples.in_process import run_example, saved_bits
from tests.paths import ROOT

SIZE = 80


def test_the_watch_helps_after_the_change_and_a_cut_run_ends_with_the_same_bits(tmp_path):
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


def test_it_has_80_lines_at_most():
    file = ROOT / "examples" / "online_drift.py"
    assert len(file.read_text(encoding="utf-8").splitlines()) <= SIZE
