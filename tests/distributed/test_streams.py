"""Learning from a stream in several processes: the same bits, each sample once, and stops while all wait."""

import json

import pytest

from onion.checkpointing import checkpoint
from onion.online import Spool, SpoolWriter
from onion.testing import toy_examples
from tests.abilities import needs_draws_again
from tests.distributed.launched import ranks
from tests.paths import ROOT

pytest.importorskip("river")

pytestmark = [pytest.mark.ranks, needs_draws_again]

JOB = ROOT / "tests" / "distributed" / "stream_job.py"
SAMPLES = [{name: value.tolist() for name, value in example.items()} for example in toy_examples(70)]
BAD = {"x": "no numbers", "y": [0.0]}


def write(folder, samples):
    folder.mkdir(exist_ok=True)
    with SpoolWriter(folder / "samples.db") as writer:
        writer.write(samples)


def unread(folder):
    spool = Spool(folder / "samples.db")
    spool.position = checkpoint.newest(folder / "run").items["stream_provider"]["position"]
    left = spool.read(100, 0)
    spool.close()
    return left


def test_any_number_of_processes_learns_each_sample_once_also_when_stopped_while_it_waits(tmp_path):
    started = tmp_path / "started"
    started.mkdir()
    write(tmp_path / "one", [*SAMPLES[:20], BAD, *SAMPLES[20:]])
    (alone,) = ranks(started, 0, JOB, place=tmp_path / "one")
    assert (alone["step"], alone["samples"], alone["rejected"], len(alone["values"])) == (6, 70, 1, 3)

    many = tmp_path / "many"
    write(many, [*SAMPLES[:20], BAD, *SAMPLES[20:40]])  # 5 of the second pass: no full batch
    for rank, found in enumerate(ranks(started, 2, JOB, place=many, waits=1)):
        assert found["error"] == "SystemExit: 143"
        assert found["prepared"] == (41, 18)[rank]  # rank 1: its two pieces of 16, 16 and 3, and no more
    assert checkpoint.newest(many / "run").step == 3
    assert len(unread(many)) == 5
    write(many, SAMPLES[40:])
    for rank, found in enumerate(ranks(started, 4, JOB, place=many)):
        assert {**found, "rank": 0, "prepared": 0} == {**alone, "prepared": 0}, rank
    assert unread(many) == []
    rejected = json.loads((many / "run" / "rejected.jsonl").read_text())  # one line: rank 0 alone writes it
    assert rejected["sample"] == BAD
