"""A short soak; and that it cannot miss what grows."""

import json
import os
import subprocess
import sys

import pytest

from scripts.soak import __main__ as soak
from scripts.soak import growth
from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

MIB = 2**20


def test_all_of_an_online_run_goes_on(tmp_path):
    samples = tmp_path / "samples.jsonl"
    words = ["--batches", "1200", "--limit", str(PATIENCE), "--look", "0.05", "--samples", str(samples)]
    command = [sys.executable, "-m", "scripts.soak", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["flat"] == (done.returncode == 0)
    seen = [json.loads(line) for line in samples.read_text().splitlines()]
    assert len(seen) == told["samples"] >= 3
    steps = [each["step"] for each in seen]
    assert steps == sorted(steps)
    assert told["batches"] == steps[-1] > 600
    assert told["last"]["memory"] > 100 * MIB
    for name in ("threads", "handles"):  # not their line: one connection among so few samples tilts it
        values = [each[name] for each in seen[len(seen) // 4 :]]
        assert max(values) - min(values) <= 3, (name, values)


def test_a_line_passes_over_what_fills_first():
    steps = list(range(0, 101, 5))
    assert growth.rise(steps, [1000.0] * 5 + [7.0] * 16, 100) == pytest.approx(0, abs=1e-6)
    assert growth.rise(steps, [1000.0] * 5 + [2.0 * step for step in steps[5:]], 50) == pytest.approx(100)


def test_a_line_needs_three_samples():
    with pytest.raises(ValueError, match="2 samples are too few"):
        growth.rise([0, 90, 100], [1, 1, 1], 100)


def flat():
    return [{"step": step, **dict.fromkeys(soak.ALLOWED, 5)} for step in range(0, 10_000, 500)]


def test_what_is_flat_is_well():
    told = soak.verdict(flat(), [(0, 5), (5000, 5), (9000, 5), (9500, 5)])
    assert (told["flat"], told["grown"], told["batches"]) == (True, [], 9500)


@pytest.mark.parametrize(
    ("name", "a_batch"), [("memory", 300), ("handles", 1e-4), ("threads", 1e-4), ("journal", 20), ("checkpoints", 1e-4)]
)
def test_what_grows_a_little_with_every_batch_is_told(name, a_batch):
    samples = [{**each, name: each["step"] * a_batch} for each in flat()]
    assert soak.verdict(samples, [(0, 5), (5000, 5), (9000, 5), (9500, 5)])["grown"] == [name]


def test_what_bare_paddle_grows_by_is_told_beside():
    told = soak.verdict(flat(), [(step, 500 * step) for step in (0, 5000, 9000, 9500)])
    assert told["flat"]
    assert told["memory_of_bare_paddle"] == pytest.approx(500 * soak.DAY)


def test_a_look_sees_files_and_threads(tmp_path):
    before = growth.figures(os.getpid(), tmp_path)
    (tmp_path / "samples.db").write_bytes(b"x" * 1000)
    (tmp_path / "run" / "step-00000001").mkdir(parents=True)
    with (tmp_path / "samples.db").open():
        after = growth.figures(os.getpid(), tmp_path)
    assert (after["handles"] - before["handles"], after["spool"], after["checkpoints"]) == (1, 1000, 1)
    assert after["threads"] == before["threads"] >= 1
    assert after["memory"] > MIB
