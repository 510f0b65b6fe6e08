"""scripts/hostile.py: some hostile requests to a real run; and that it cannot miss what comes of one."""

import json
import subprocess
import sys
from collections import Counter
from itertools import islice
from random import Random

import pytest

from onion.checkpointing import checkpoint
from onion.online.http import Service
from tests.online.http.memory_run import TOKEN, MemoryRun
from tests.paths import ROOT

pytestmark = pytest.mark.slow


def test_nothing_comes_of_hostile_requests():
    command = [sys.executable, "scripts/hostile.py", "--requests", "15", "--seed", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, told
    assert told["same"]
    assert told["commands"] == ["set", "stop"]
    assert sum(sum(tally.values()) for tally in told["answers"].values()) == 15
    assert told["predictions"] == 2


# -- the requests ------------------------------------------------------------------------------------------------------


def answered(load, kind, times, token=TOKEN):
    """Send some requests of a kind to a service; return what was answered, and what its run has heard."""
    hostile, draw = load("hostile"), Random(2)
    with MemoryRun() as run:
        service = Service(run, port=0, token=token)
        service.start()
        target = load("abusing.target").Target(int(service.url.rpartition(":")[2]), TOKEN)
        try:
            tally = Counter(hostile.sent(target, hostile.KINDS[kind], draw) for _ in range(times))
        finally:
            service.stop()
        return {kind: tally}, run.heard + run.samples


@pytest.mark.parametrize("kind", ["ambiguous", "misshapen", "endless"])
def test_each_is_refused_and_none_heeded(load, kind):
    tallies, heard = answered(load, kind, 10)
    assert load("hostile").wrong(tallies) == {}
    assert heard == []


def test_a_service_that_asks_for_no_token_is_found_out(load):
    tallies, heard = answered(load, "wrong token", 8, token=None)
    assert load("hostile").wrong(tallies)["wrong token: 200"] > 0
    assert heard


def test_the_same_seed_draws_the_same(load):
    hostile, target = load("hostile"), load("abusing.target").Target(1, TOKEN)

    def drawn(seed):
        draw = Random(seed)
        made = [make(draw, target) for make in hostile.KINDS.values()]
        return [each if isinstance(each, bytes) else list(islice(each, 2)) for each in made]

    assert drawn(4) == drawn(4) != drawn(5)


# -- what is left ------------------------------------------------------------------------------------------------------


def test_what_is_half_written_is_found(load, tmp_path):
    remains = load("abusing.remains")
    run_state = {"counters": {}, "generators": {}, "onion": {}, "best_step": None}
    checkpoint.make(tmp_path)
    written = checkpoint.write(tmp_path, checkpoint.Checkpoint(3, run_state, {}))
    (tmp_path / "journal.jsonl").write_text('{"a": 1}\n')
    assert remains.half_written(tmp_path) == []
    (tmp_path / "rejected.jsonl").write_text('{"a": 1}\n{"a')
    (tmp_path / "x.partial").touch()
    (written / "state.json").write_bytes(b"{")
    assert remains.half_written(tmp_path) == ["rejected.jsonl", "step-00000003", "x.partial"]


def test_an_error_in_the_log_is_found(load, tmp_path):
    log = tmp_path / "log"
    log.write_text("[INFO] all is well\n  Traceback (most recent call last):\n[   ERROR] no\n")
    assert load("abusing.remains").complaints(log) == ["  Traceback (most recent call last):", "[   ERROR] no"]


@pytest.mark.parametrize(
    "fault",
    [
        {"same": False},
        {"wrong_answers": {"noise: 200": 1}},
        {"commands": ["set", "pause", "stop"]},
        {"predictions_refused": 1},
        {"log": ["Traceback"]},
        {"half_written": ["step-00000001"]},
        {"handles": [10, 90]},
    ],
)
def test_one_fault_is_enough(load, fault):
    hostile = load("hostile")
    well = {"same": True, "wrong_answers": {}, "commands": ["set", "stop"], "predictions_refused": 0, "log": []}
    well |= {"half_written": [], "handles": [10, 11]}
    assert hostile._is_well(well)
    assert not hostile._is_well({**well, **fault})


@pytest.mark.parametrize("status", ["400", "closed", "200", "500", "silent"])
def test_only_refusals_and_ends_are_right(load, status):
    assert bool(load("hostile").wrong({"noise": Counter({status: 1})})) is (status not in ("400", "closed"))
