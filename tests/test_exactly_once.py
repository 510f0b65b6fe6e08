"""scripts/online and scripts/soak: real processes, real kills; and proofs that cannot miss what is lost or grows."""

import json
import os
import shutil
from collections import Counter

import numpy as np
import pytest

from onion.checkpointing import checkpoint
from scripts.online import exactly_once, sources
from scripts.soak import __main__ as soak
from scripts.soak import growth
from tests.fresh_python import module
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


def run(script, *words):
    done = module(f"scripts.online.{script}", *words)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(("source", "processes"), [("spool", 1), ("folder", 1), ("redis", 1), ("spool", 2)])
def test_every_sample_is_counted_once(source, processes):
    if source == "redis" and shutil.which("redis-server") is None:
        pytest.skip("no redis-server on PATH (Debian: apt-get install redis-server)")
    words = ["--source", source, "--samples", "3000", "--kills", "3", "--seed", "5", "--pause", "0.15"]
    words += ["--processes", str(processes)]
    status, lines, errors = run("exactly_once", *words)
    told = json.loads(lines[-1])
    assert (status, told["exact"], told["counts"]) == (0, True, {"1": 3000}), errors
    assert sum(told["kills"].values()) == 3


def test_a_steered_run_is_done_again():
    status, lines, errors = run("steered", "--samples", "15000")
    told = json.loads(lines[-1])
    assert status == 0, (told, errors)
    assert told["exactly_once"] is told["commands_once"] is told["same_when_done_again"] is True
    assert told["kills"] == 1


def test_what_is_counted_is_what_the_newest_checkpoint_has(tmp_path):
    counts = np.array([[1.0], [1.0], [2.0], [0.0]], "float32")
    run_state = {"counters": {}, "generators": {}, "onion": {}, "best_step": None}
    checkpoint.make(tmp_path)
    checkpoint.write(tmp_path, checkpoint.Checkpoint(3, run_state, {"counts": {"table.weight": counts}}))
    assert exactly_once.counts_in(tmp_path) == Counter({1.0: 2, 2.0: 1, 0.0: 1})
    with pytest.raises(SystemExit, match="contains no checkpoint"):
        exactly_once.counts_in(tmp_path / "other")


def test_a_producer_of_files_goes_on_behind_the_newest_wherever_it_is(tmp_path):
    place = sources.FolderPlace(tmp_path)
    assert place.begin() == 0
    place.put(range(5))
    assert place.begin() == 5
    source = place.source()
    assert [sample.data["id"] for sample in source.read(9, 0)] == list(range(5))
    assert place.begin() == 5  # it is in taken now
    source.commit(source.position)
    source.close()
    assert place.begin() == 5  # and in trained


pytestmark = pytest.mark.slow

MIB = 2**20


def test_all_of_an_online_run_goes_on(tmp_path):
    samples = tmp_path / "samples.jsonl"
    words = ["--batches", "1200", "--limit", str(PATIENCE), "--look", "0.05", "--samples", str(samples)]
    done = module("scripts.soak", *words)
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
    with pytest.raises(ValueError, match="2 samples are too few"):
        growth.rise([0, 90, 100], [1, 1, 1], 100)


def flat():
    return [{"step": step, **dict.fromkeys(soak.ALLOWED, 5)} for step in range(0, 10_000, 500)]


def test_what_is_flat_is_well_and_what_bare_paddle_grows_by_is_told_beside():
    told = soak.verdict(flat(), [(step, 500 * step) for step in (0, 5000, 9000, 9500)])
    assert (told["flat"], told["grown"], told["batches"]) == (True, [], 9500)
    assert told["memory_of_bare_paddle"] == pytest.approx(500 * soak.DAY)


@pytest.mark.parametrize(
    ("name", "a_batch"), [("memory", 300), ("handles", 1e-4), ("threads", 1e-4), ("journal", 20), ("checkpoints", 1e-4)]
)
def test_what_grows_a_little_with_every_batch_is_told(name, a_batch):
    samples = [{**each, name: each["step"] * a_batch} for each in flat()]
    assert soak.verdict(samples, [(0, 5), (5000, 5), (9000, 5), (9500, 5)])["grown"] == [name]


def test_a_look_sees_files_and_threads(tmp_path):
    before = growth.figures(os.getpid(), tmp_path)
    (tmp_path / "samples.db").write_bytes(b"x" * 1000)
    (tmp_path / "run" / "step-00000001").mkdir(parents=True)
    with (tmp_path / "samples.db").open():
        after = growth.figures(os.getpid(), tmp_path)
    assert (after["handles"] - before["handles"], after["spool"], after["checkpoints"]) == (1, 1000, 1)
    assert after["threads"] == before["threads"] >= 1
    assert after["memory"] > MIB
