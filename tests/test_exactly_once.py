"""scripts/online: real processes, real kills, and a proof that can fail."""

import json
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from onion.checkpointing import checkpoint
from scripts.online import exactly_once, sources
from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


def run(script, *words):
    done = subprocess.run(
        [sys.executable, "-m", f"scripts.online.{script}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("source", ["spool", "folder", "redis"])
def test_every_sample_is_counted_once(source):
    if source == "redis" and shutil.which("redis-server") is None:
        pytest.skip("no redis-server on PATH (Debian: apt-get install redis-server)")
    words = ["--source", source, "--samples", "3000", "--kills", "3", "--seed", "5", "--pause", "0.15"]
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
