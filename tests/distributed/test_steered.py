"""Commands, stops and notices that reach one rank take effect on all of them, after the same step."""

import json
import shutil

import pytest

from onion.online.journal.journal import FILE
from tests.abilities import needs_draws_again
from tests.commands import onion
from tests.distributed.launched import appeared, launching, ranks
from tests.online.toys import rows_in
from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = [pytest.mark.ranks, needs_draws_again]

SCRIPT = ROOT / "tests" / "distributed" / "steered.py"
TOGETHER = ("commands", "in a test", "all fail", "full disk", "messages", "signal to 0", "signal to 1")
STOPS = ("preempted", "limited", "at the end", "early")
NO_STOP = {"step": 10, "pass": 2, "stopped": None, "received": None, "saved": 10}


def trainings(folder, processes, *what, **options):
    """Return what came of each training on each rank: name -> [of rank 0, of rank 1]."""
    found = ranks(folder, processes, SCRIPT, what=what, **options)
    return {name: [each and each[name] for each in found] for name in what}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process that runs all pieces, and its journals."""
    folder = tmp_path_factory.mktemp("alone")
    return {name: each for name, (each,) in trainings(folder, 0, *TOGETHER[:2], saves=folder).items()}, folder


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Two processes, of which the last training died."""
    folder = tmp_path_factory.mktemp("together")
    return trainings(folder, 2, *TOGETHER, *STOPS, "dies", saves=folder), folder


def same(ranks):
    """Return what all ranks have come to, besides the answers, which rank 0 has."""
    first, *others = [{**each, "answers": None, "answer": None} for each in ranks]
    assert all(each == first for each in others)
    return ranks[0]


def commands(folder):
    """What a journal has, without times."""
    return [{name: row[name] for name in row if name != "time"} for row in rows_in(folder / FILE)]


@pytest.mark.parametrize("what", ["commands", "in a test"])
def test_commands_come_to_the_same_as_in_one_process(what, alone, together):
    found = same(together[0][what])
    assert found == alone[0][what]
    assert found["answers"]
    assert together[0][what][1]["answers"] == []
    name = what.rpartition(" ")[-1]
    assert commands(together[1] / name) == commands(alone[1] / name)


@pytest.mark.parametrize("processes", [0, 2])
def test_commands_after_the_checkpoint_are_repeated_in_any_number_of_processes(processes, alone, together, tmp_path):
    assert [each["saved"] for each in together[0]["dies"]] == [4, 4]
    saves = tmp_path / "saves"
    shutil.copytree(together[1] / "died", saves / "died")
    found = same(trainings(tmp_path, processes, "again", saves=saves)["again"])
    assert {**found, "answers": None} == {**alone[0]["commands"], "answers": None}


def test_what_fails_on_all_is_answered_and_the_run_goes_on(together):
    assert same(together[0]["all fail"])["answer"] == "PlannedError: no test on rank 0"
    assert same(together[0]["full disk"])["answer"] == "CheckpointError"
    for what in ("all fail", "full disk"):
        assert together[0][what][0].items() >= NO_STOP.items()


def test_what_fails_on_one_names_it_and_ends_the_run(tmp_path):
    first, second = trainings(tmp_path, 2, "one fails")["one fails"]
    assert first["error"] == second["error"] == "RankError: rank 1: PlannedError: no test on rank 1"
    assert first["answer"] == "the run ends: rank 1: PlannedError: no test on rank 1"


def test_messages_are_opened_by_all_and_answered_by_the_first(together):
    found = same(together[0]["messages"])
    assert (found["step"], found["stopped"], found["rate"]) == (6, "seen enough", 0.5)
    assert found["answers"] == ["None", "[3, 0]", "list index out of range", "None"]


@pytest.mark.parametrize("what", ["signal to 0", "signal to 1"])
def test_a_signal_ends_a_pause(what, together):
    ended = {"step": 3, "stopped": "received SIGTERM", "received": 15, "saved": 3}
    assert same(together[0][what]).items() >= ended.items()


def test_a_rank_that_is_killed_in_a_pause_is_named(tmp_path):
    first, second = trainings(tmp_path, 2, "killed")["killed"]
    assert second is None
    assert first["error"].startswith("RankError: rank 1: its process ended without a word")


def test_what_one_rank_hears_or_its_clock_says_stops_all_after_the_same_batch(together):
    announced = together[0]["preempted"]
    for name in announced[0]:
        found = same([each[name] for each in announced])
        assert (found["step"], found["saved"]) == (3, 3), name
        assert found["stopped"].startswith("the machine ends"), name
    expected = {
        "limited": {"step": 3, "pass": 0, "stopped": "5 seconds are over", "saved": 3},
        "at the end": {"step": 5, "pass": 1, "stopped": "5 seconds are over", "saved": 5},
        "early": {"step": 6, "pass": 1, "stopped": "tester.worse has not improved on 2 for 2 tests", "saved": 6},
    }
    for what, ended in expected.items():
        assert same(together[0][what]).items() >= ended.items()


def test_ctl_steers_two_processes_as_it_does_one(tmp_path):
    with launching(tmp_path, 2, SCRIPT, json.dumps({"out": str(tmp_path), "what": ["serve"]})) as job:
        url = appeared(tmp_path / "url", job)

        def ctl(*words):
            done = onion(tmp_path, "ctl", *words, "--url", url)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        assert ctl("status")["state"] == "paused"
        assert ctl("set", "learning_rate=0.5")["result"] == {"parameter_updater.learning_rate": 0.5}
        assert ctl("step", "4")["step"] == 3
        while ctl("status")["step"] < 7:
            pass
        assert set(ctl("test")["result"]) == {"tester.dice", "tester.error"}
        assert ctl("save")["result"]["saved"] is True
        (tmp_path / "inputs").write_text(json.dumps([1.0] * 8))
        assert len(ctl("predict", "inputs")["predictions"]) == 1
        ctl("resume")
        step = ctl("stop", "--yes", "--why", "enough")["step"]
        assert job.wait(PATIENCE) == 0
    for rank in (0, 1):
        found = json.loads((tmp_path / f"rank-{rank}.json").read_text())["serve"]
        assert (found["stopped"], found["step"], found["saved"], found["rate"]) == ("enough", step, step, 0.5)
