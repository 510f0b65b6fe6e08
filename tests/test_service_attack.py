"""scripts.service_attack: a short siege, some requests; and that neither can miss what comes of them."""

import json
import socket
from collections import Counter
from itertools import islice
from random import Random
from threading import Event

import numpy as np
import pytest

from onion.checkpointing import checkpoint
from onion.checkpointing.checkpoint import Checkpoint
from onion.online.http import Service
from scripts.service_attack import __main__ as attack
from scripts.service_attack import outcome, requests, siege, trainer
from tests.fresh_python import module
from tests.online.http.memory_run import TOKEN, MemoryRun
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

TRIES = 12


def attacked(*words):
    done = module("scripts.service_attack", *words)
    told = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, told
    assert (told["same"], told["commands"]) == (True, ["set", "stop"])
    return told


def test_nothing_comes_of_hostile_requests_and_of_a_siege():
    told = attacked("requests", "--count", "15", "--seed", "3")
    assert sum(sum(tally.values()) for tally in told["answers"].values()) == 15
    assert told["predictions"] == 2
    told = attacked("siege", "--seconds", "0", "--connections", "300", "--seed", "5")
    assert told["answers"]["wrong token"]["401"] > 0
    assert {"200", "409"} & told["answers"]["replayed"].keys()
    assert told["answers"]["crowd"]["opened"] == 300
    assert told["step"] >= sum(told["steps"].values()) > 0
    assert told["rejected"] > 0


@pytest.fixture
def service():
    """Send requests to a service with or without a token; return the tally, and what its desk has heard."""

    def run(send, token):
        with MemoryRun() as desk:
            started = Service(desk, port=0, token=token)
            started.start()
            try:
                tallies = send(requests.Target(int(started.url.rpartition(":")[2]), TOKEN))
            finally:
                started.stop()
            return tallies, desk.heard + desk.samples

    return run


def asking(*names):
    draw = Random(3)
    return lambda target: {
        name: Counter(target.ask(requests.MAKERS[name](draw, target), PATIENCE)[0] for _ in range(TRIES))
        for name in names
    }


def provoking(kind):
    draw = Random(2)
    return lambda target: {kind: Counter(attack.sent(target, attack.KINDS[kind], draw) for _ in range(10))}


def test_a_service_that_keeps_its_token_obeys_none(service):
    tallies, heard = service(asking("wrong token", "other site", "deep", "trick"), TOKEN)
    assert (outcome.wrong_answers(tallies), heard) == ({}, [])
    assert tallies["wrong token"] == {"401": TRIES}
    assert tallies["other site"] == {"403": TRIES}
    for kind in ("ambiguous", "misshapen", "endless"):
        tallies, heard = service(provoking(kind), TOKEN)
        assert (attack.not_refused(tallies), heard) == ({}, []), kind


def test_a_service_that_asks_for_no_token_is_found_out(service):
    tallies, heard = service(asking("wrong token"), None)
    assert outcome.wrong_answers(tallies)["wrong token: 200"] > 0
    assert heard
    tallies, heard = service(provoking("wrong token"), None)
    assert attack.not_refused(tallies)["wrong token: 200"] > 0
    assert heard


def test_no_bad_sample_can_be_used():
    target, draw = requests.Target(1, "a-token"), Random(1)
    example = trainer.example
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


def test_half_a_request_never_becomes_a_whole_one(listener, monkeypatch):
    over, tally = Event(), Counter()
    monkeypatch.setattr(over, "wait", lambda seconds: over.set())
    siege.half(requests.Target(listener.getsockname()[1], TOKEN), over, tally, Random(2))
    assert tally["begun"] == siege.HELD_CONNECTIONS
    for _ in range(siege.HELD_CONNECTIONS):
        with listener.accept()[0] as connection:
            heard = connection.recv(65536)
            assert heard
            head, end, body = heard.partition(b"\r\n\r\n")
            assert not end or len(body) < int(head.partition(b"content-length: ")[2].split()[0])


def test_a_slow_sender_sends_a_byte_at_a_time(listener, monkeypatch):
    over, tally, waits = Event(), Counter(), []
    monkeypatch.setattr(over, "wait", lambda seconds: waits.append(seconds) or len(waits) > 3)
    siege.slow(requests.Target(listener.getsockname()[1], TOKEN), over, tally, Random(2))
    assert tally == {"begun": siege.HELD_CONNECTIONS, "bytes": 3 * siege.HELD_CONNECTIONS}
    with listener.accept()[0] as connection:
        assert connection.recv(100) in (b"POS", b"PAT")


def test_a_crowd_comes_in_waves_where_it_has_to(listener, monkeypatch):
    tally = Counter()
    monkeypatch.setattr(siege, "raised_limit", lambda: siege.RESERVED_FILES + 30)
    monkeypatch.setattr(siege.time, "sleep", lambda seconds: None)
    siege.crowd(requests.Target(listener.getsockname()[1], TOKEN), Event(), tally, 75)
    assert tally == {"opened": 75, "at once": 30}


def test_the_same_seed_draws_the_same():
    target = requests.Target(1, TOKEN)

    def drawn(seed):
        draw = Random(seed)
        made = [make(draw, target) for make in attack.KINDS.values()]
        return [each if isinstance(each, bytes) else list(islice(each, 2)) for each in made]

    assert drawn(4) == drawn(4) != drawn(5)


def test_a_siege_lasts_until_each_attack_is_heard_among_many_tries_or_has_ended(tmp_path):
    steps, counts = tmp_path / "steps", Counter()

    def ask(over, tally):
        tally["silent"] = siege.MIN_REQUESTS
        assert not over.is_set()
        tally["401"] = 1
        over.wait()

    def gather(over, tally):
        assert not over.is_set()
        tally["opened"] = 1

    def train(over, tally):
        tally["begun"] = siege.MIN_REQUESTS
        while not over.is_set():
            counts["steps"] += 1
            partial = tmp_path / "partial"
            partial.write_text(str(counts["steps"]))
            partial.replace(steps)

    progress, tallies = siege.lay({"ask": ask, "gather": gather, "train": train}, 0, steps)
    assert tallies["ask"] == {"silent": siege.MIN_REQUESTS, "401": 1}
    assert tallies["gather"] == {"opened": 1}
    assert progress.steps > 0


def test_a_training_that_stands_still_and_an_attack_that_breaks_are_told(tmp_path, monkeypatch):
    def broken(over, tally):
        raise RuntimeError("out of bytes")

    steps = tmp_path / "steps"
    monkeypatch.setattr(siege, "STALL", 0.2)
    steps.write_text("5")
    progress, _ = siege.lay({}, 0, steps)
    assert progress.steps == 0
    assert progress.stall >= 0.2
    with pytest.raises(RuntimeError, match="out of bytes"):
        siege.lay({"broken": broken}, 0, steps)


def taken(step=3, paddle=(1,), **changes):
    items = {
        "gradient_machine": {"weight": np.arange(4.0)},
        "parameter_updater": {"learning_rate": 0.1},
        "stream_provider": {"position": "7"},
    }
    items = {name: {**saved, **changes.get(name, {})} for name, saved in items.items()}
    return Checkpoint(step, {"generators": {"paddle": list(paddle)}}, items)


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, []),
        ({"stream_provider": {"position": "9"}}, []),
        ({"gradient_machine": {"weight": -np.arange(4.0) * -1 + [-0.0, 0, 0, 1e-15]}}, ["gradient_machine/weight"]),
        ({"gradient_machine": {"weight": np.arange(4)}}, ["gradient_machine/weight"]),
        ({"gradient_machine": {"bias": 1}}, ["gradient_machine/bias"]),
        ({"parameter_updater": {"learning_rate": 0.2}}, ["parameter_updater/learning_rate"]),
        ({"paddle": [2]}, ["generators/paddle"]),
        ({"step": 4}, ["step"]),
    ],
)
def test_every_bit_that_was_learned_is_compared(changes, differs):
    assert outcome.differences(taken(), taken(**changes)) == differs


def test_answers_that_should_not_be_are_counted():
    tallies = {
        "noise": Counter({"400": 5, "closed": 2, "503": 1, "silent": 1}),
        "trick": Counter({"200": 1, "404": 3}),
        "deep": Counter({"500": 2}),
        "replayed": Counter({"200": 9, "500": 1}),
    }
    assert outcome.wrong_answers(tallies) == {"trick: 200": 1, "deep: 500": 2, "replayed: 500": 1}
    for status in ("400", "closed", "200", "500", "silent"):
        assert bool(attack.not_refused({"noise": Counter({status: 1})})) is (status not in ("400", "closed"))


WELL = {"same": True, "wrong_answers": {}, "commands": ["set", "stop"], "handles": [10, 11]}
SIEGE = {**WELL, "steps": {"requests": 1}, "longest_stall_s": 0.1, "rejected": 1}
REQUESTS = {**WELL, "predictions_refused": 0, "log": [], "half_written": []}
FAULTS = [
    {"same": False},
    {"wrong_answers": {"trick: 200": 1}},
    {"commands": ["set", "pause", "stop"]},
    {"commands": ["stop"]},
    {"handles": [10, 90]},
]
OF_SIEGES = [{"steps": {"requests": 0, "crowd": 5}}, {"longest_stall_s": 600.0}, {"rejected": 0}]
OF_REQUESTS = [{"predictions_refused": 1}, {"log": ["Traceback"]}, {"half_written": ["step-00000001"]}]


@pytest.mark.parametrize(
    ("is_well", "well", "faults"),
    [
        (attack.siege_is_well, SIEGE, [*FAULTS, *OF_SIEGES]),
        (attack.requests_are_well, REQUESTS, [*FAULTS, *OF_REQUESTS]),
    ],
)
def test_one_fault_is_enough(is_well, well, faults):
    assert is_well(well)
    for fault in faults:
        assert not is_well(well | fault), fault


def test_what_is_half_written_and_errors_in_the_log_are_found(tmp_path):
    run_state = {"counters": {}, "generators": {}, "onion": {}, "best_step": None}
    checkpoint.make(tmp_path)
    written = checkpoint.write(tmp_path, checkpoint.Checkpoint(3, run_state, {}))
    (tmp_path / "journal.jsonl").write_text('{"a": 1}\n')
    assert outcome.half_written(tmp_path) == []
    (tmp_path / "rejected.jsonl").write_text('{"a": 1}\n{"a')
    (tmp_path / "x.partial").touch()
    (written / "state.json").write_bytes(b"{")
    assert outcome.half_written(tmp_path) == ["rejected.jsonl", "step-00000003", "x.partial"]
    log = tmp_path / "log"
    log.write_text("[INFO] all is well\n  Traceback (most recent call last):\n[   ERROR] no\n")
    assert outcome.complaints(log) == ["  Traceback (most recent call last):", "[   ERROR] no"]
