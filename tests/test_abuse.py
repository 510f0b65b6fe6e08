"""A short siege; and that it cannot miss what comes of one."""

import json
import socket
import subprocess
import sys
from collections import Counter
from random import Random
from threading import Event

import numpy as np
import pytest

from onion.checkpointing.checkpoint import Checkpoint
from onion.online.http import Service
from tests.online.http.memory_run import TOKEN, MemoryRun
from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

TRIES = 12


def test_nothing_comes_of_a_siege():
    command = [sys.executable, "scripts/abuse.py", "--seconds", "0", "--connections", "300", "--seed", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, told
    assert told["same"]
    assert told["commands"] == ["set", "stop"]
    assert told["answers"]["wrong token"]["401"] > 0
    assert {"200", "409"} & told["answers"]["replayed"].keys()
    assert told["answers"]["crowd"]["opened"] == 300
    assert told["step"] >= sum(told["steps"].values()) > 0
    assert told["rejected"] > 0


# -- the attacks -------------------------------------------------------------------------------------------------------


def asked(load, service, token, names):
    """Send some of each kind of request; return what was answered."""
    target = load("abusing.target").Target(int(service.url.rpartition(":")[2]), token)
    makers, draw = load("abusing.requests").MAKERS, Random(3)
    return {name: Counter(target.ask(makers[name](draw, target))[0] for _ in range(TRIES)) for name in names}


def test_a_service_that_keeps_its_token_heeds_none(load):
    with MemoryRun() as run:
        service = Service(run, port=0, token=TOKEN)
        service.start()
        try:
            tallies = asked(load, service, TOKEN, ("wrong token", "other site", "deep", "trick"))
        finally:
            service.stop()
        assert load("abusing.verdict").wrong_answers(tallies) == {}
        assert (run.heard, run.samples) == ([], [])
        assert tallies["wrong token"] == {"401": TRIES}
        assert tallies["other site"] == {"403": TRIES}


def test_a_service_that_asks_for_no_token_is_found_out(load):
    with MemoryRun() as run:
        service = Service(run, port=0)
        service.start()
        try:
            tallies = asked(load, service, TOKEN, ("wrong token",))
        finally:
            service.stop()
        assert load("abusing.verdict").wrong_answers(tallies)["wrong token: 200"] > 0
        assert run.heard


def test_no_bad_sample_can_be_used(load):
    requests, target, draw = load("abusing.requests"), load("abusing.target").Target(1, "a-token"), Random(1)
    example = load("abusing.trainer").example
    lines = b"\n".join(requests.bad_samples(draw, target).partition(b"\r\n\r\n")[2] for _ in range(20)).split(b"\n")
    assert len(lines) > 100
    for line in lines:
        with pytest.raises((KeyError, TypeError, ValueError)):
            example(json.loads(line))
    assert set(example({"id": 3})) == {"inputs", "target"}


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0), backlog=200) as made:
        made.settimeout(PATIENCE)
        yield made


def test_half_a_request_never_becomes_a_whole_one(load, listener, monkeypatch):
    crowds, over, tally = load("abusing.crowds"), Event(), Counter()
    monkeypatch.setattr(over, "wait", lambda seconds: over.set())
    crowds.half(load("abusing.target").Target(listener.getsockname()[1], TOKEN), over, tally, Random(2))
    assert tally["begun"] == crowds.HELD
    for _ in range(crowds.HELD):
        with listener.accept()[0] as connection:
            heard = connection.recv(65536)
            assert heard
            head, end, body = heard.partition(b"\r\n\r\n")
            assert not end or len(body) < int(head.partition(b"content-length: ")[2].split()[0])


def test_a_slow_sender_sends_a_byte_at_a_time(load, listener, monkeypatch):
    crowds, over, tally, waits = load("abusing.crowds"), Event(), Counter(), []
    monkeypatch.setattr(over, "wait", lambda seconds: waits.append(seconds) or len(waits) > 3)
    crowds.slow(load("abusing.target").Target(listener.getsockname()[1], TOKEN), over, tally, Random(2))
    assert tally == {"begun": crowds.HELD, "bytes": 3 * crowds.HELD}
    with listener.accept()[0] as connection:
        assert connection.recv(100) in (b"POS", b"PAT")


def test_a_crowd_comes_in_waves_where_it_has_to(load, listener, monkeypatch):
    crowds, tally = load("abusing.crowds"), Counter()
    monkeypatch.setattr(crowds, "raised_limit", lambda: crowds.SPARE + 30)
    monkeypatch.setattr(crowds.time, "sleep", lambda seconds: None)
    crowds.crowd(load("abusing.target").Target(listener.getsockname()[1], TOKEN), Event(), tally, 75)
    assert tally == {"opened": 75, "at once": 30}


# -- the siege ---------------------------------------------------------------------------------------------------------


def test_a_siege_lasts_until_each_attack_is_heard_among_many_tries_or_has_ended(load, tmp_path):
    siege, steps, counts = load("abusing.siege"), tmp_path / "steps", Counter()

    def ask(over, tally):
        tally["silent"] = siege.LEAST
        assert not over.is_set()
        tally["401"] = 1
        over.wait()

    def gather(over, tally):
        assert not over.is_set()
        tally["opened"] = 1

    def train(over, tally):
        tally["begun"] = siege.LEAST
        while not over.is_set():
            counts["steps"] += 1
            partial = tmp_path / "partial"
            partial.write_text(str(counts["steps"]))
            partial.replace(steps)

    progress, tallies = siege.lay({"ask": ask, "gather": gather, "train": train}, 0, steps)
    assert tallies["ask"] == {"silent": siege.LEAST, "401": 1}
    assert tallies["gather"] == {"opened": 1}
    assert progress.steps > 0


def test_a_training_that_stands_still_is_told(load, tmp_path, monkeypatch):
    siege, steps = load("abusing.siege"), tmp_path / "steps"
    monkeypatch.setattr(siege, "STALL", 0.2)
    steps.write_text("5")
    progress, _ = siege.lay({}, 0, steps)
    assert progress.steps == 0
    assert progress.stall >= 0.2


def test_an_attack_that_breaks_is_told(load, tmp_path):
    def broken(over, tally):
        raise RuntimeError("out of bytes")

    with pytest.raises(RuntimeError, match="out of bytes"):
        load("abusing.siege").lay({"broken": broken}, 0, tmp_path / "steps")


# -- the verdict -------------------------------------------------------------------------------------------------------


def taken(**changes):
    items = {
        "gradient_machine": {"weight": np.arange(4.0)},
        "parameter_updater": {"learning_rate": 0.1},
        "stream_provider": {"position": "7"},
    }
    for name, saved in changes.items():
        if name in items:
            items[name].update(saved)
    generators = {"paddle": [1], **changes.get("generators", {})}
    return Checkpoint(changes.get("step", 3), {"generators": generators}, items)


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, []),
        ({"stream_provider": {"position": "9"}}, []),
        ({"gradient_machine": {"weight": -np.arange(4.0) * -1 + [-0.0, 0, 0, 1e-15]}}, ["gradient_machine/weight"]),
        ({"gradient_machine": {"weight": np.arange(4)}}, ["gradient_machine/weight"]),
        ({"gradient_machine": {"bias": 1}}, ["gradient_machine/bias"]),
        ({"parameter_updater": {"learning_rate": 0.2}}, ["parameter_updater/learning_rate"]),
        ({"generators": {"paddle": [2]}}, ["generators/paddle"]),
        ({"step": 4}, ["step"]),
    ],
)
def test_every_bit_that_was_learned_is_compared(load, changes, differs):
    assert load("abusing.verdict").differences(taken(), taken(**changes)) == differs


def test_answers_that_should_not_be_are_counted(load):
    tallies = {
        "noise": Counter({"400": 5, "closed": 2, "503": 1, "silent": 1}),
        "trick": Counter({"200": 1, "404": 3}),
        "deep": Counter({"500": 2}),
        "replayed": Counter({"200": 9, "500": 1}),
    }
    assert load("abusing.verdict").wrong_answers(tallies) == {"trick: 200": 1, "deep: 500": 2, "replayed: 500": 1}


@pytest.mark.parametrize(
    "fault",
    [
        {"same": False},
        {"steps": {"requests": 0, "crowd": 5}},
        {"longest_stall_s": 600.0},
        {"wrong_answers": {"trick: 200": 1}},
        {"commands": ["set", "pause", "stop"]},
        {"commands": ["stop"]},
        {"rejected": 0},
        {"handles": [10, 90]},
    ],
)
def test_one_fault_is_enough(load, fault):
    abuse = load("abuse")
    well = {"same": True, "steps": {"requests": 1}, "longest_stall_s": 0.1, "wrong_answers": {}, "rejected": 1}
    well |= {"commands": ["set", "stop"], "handles": [10, 11]}
    assert abuse._is_well(well)
    assert not abuse._is_well({**well, **fault})
