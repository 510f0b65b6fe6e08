"""replay: a steered run done again has the same bits, and another one has not."""

import json
import random

import pytest

from onion import CheckpointError, CompositionError, DataError
from onion.cli import main
from onion.online import Spool
from onion.online.control.control_server import ControlServer
from onion.online.journal.journal import Journal
from onion.online.journal.replay import replay
from onion.online.stream.stream_provider import StreamProvider
from tests.online.control.steered import samples, steered, weights
from tests.online.control.test_control_server import PLAN, Script, slowly
from tests.online.lines import Line

pytestmark = pytest.mark.slow


@pytest.fixture
def spool(tmp_path):
    with Spool(tmp_path / "samples.db").writer() as writer:
        writer.write(samples(120))
    return Spool(tmp_path / "samples.db")


def first_run(source, folder, plan=PLAN, steps=16):
    script = Script(plan)
    runner = steered(source, folder, at=script)
    script.control = runner[ControlServer]
    runner.run(steps=steps)
    return runner


def test_a_steered_run_is_done_again_to_the_bit(tmp_path, spool):
    folder = tmp_path / "run"
    runner = first_run(spool, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    made = []

    def make(out):
        made.append(steered(Spool(spool.path), out))
        return made[0]

    told = replay(folder, make, tmp_path / "again")
    assert told == {"step": 16, "commands": 9, "same": True, "differs": []}
    assert weights(made[0]) == weights(runner)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_run_that_goes_on_does_not_notice(tmp_path, spool):
    folder = tmp_path / "run"
    first_run(spool, folder)
    waiting = spool.waiting()
    spool.close()
    replay(folder, lambda out: steered(Spool(spool.path), out), tmp_path / "again")
    assert spool.waiting() == waiting
    spool.close()
    first_run(spool, folder, {}, steps=18)


@pytest.mark.parametrize("change", ["rate", "ring", "pause"])
def test_another_record_is_another_run(tmp_path, spool, change):
    folder = tmp_path / "run"
    first_run(spool, folder)
    journal = (folder / "journal.jsonl").read_text()
    other = {
        "rate": journal.replace('"parameter_updater.learning_rate": 0.2', '"parameter_updater.learning_rate": 0.3'),
        "ring": journal.replace('"command": "enable"', '"command": "disable"'),
        "pause": journal.replace('"command": "pause"', '"command": "resume"'),
    }[change]
    assert other != journal
    (folder / "journal.jsonl").write_text(other)
    told = replay(folder, lambda out: steered(Spool(spool.path), out), tmp_path / "again")
    assert told["same"] is (change == "pause")
    assert ("gradient_machine/fc.weight" in told["differs"]) is (change != "pause")


def test_a_run_that_was_stopped_and_started_again_is_done_again_to_its_end(tmp_path, spool):
    first_run(spool, tmp_path / "run", {**PLAN, 6: [("stop", {})]})
    first_run(spool, tmp_path / "run", {**PLAN, 9: [("stop", {}), ("pause", {})]})
    first_run(spool, tmp_path / "run", PLAN)
    told = replay(tmp_path / "run", lambda out: steered(Spool(spool.path), out), tmp_path / "again")
    assert told["same"] is True
    assert told["step"] == 16


def test_commands_after_the_last_step_are_done_again(tmp_path, spool):
    first_run(spool, tmp_path / "run", {6: [("set", {"learning_rate": 0.3}), ("pause", {}), ("stop", {})]})
    told = replay(tmp_path / "run", lambda out: steered(Spool(spool.path), out), tmp_path / "again")
    assert told == {"step": 6, "commands": 3, "same": True, "differs": []}


def bad(count):
    return [{"x": "no", "y": [1.0]} for _ in range(count)]


def test_rejected_samples_and_batches_by_chance_are_done_again(tmp_path):
    """Samples come in lots, good and bad; what follows the journal's last row depends on the replay's clock."""
    for seed in range(12):
        folder, chance = tmp_path / str(seed), random.Random(seed)
        every = [sample for good in samples(200) for sample in (*bad(chance.choice([0, 0, 0, 5])), good)]

        def come(line, chance=chance, every=every):
            there = len(line.samples)
            line.samples += every[there : there + chance.randint(0, 5)]

        line = Line((), come)
        first_run(line, folder / "run", {3: [("set", {"learning_rate": 0.3})]}, steps=10)
        line.replay_reader = lambda every=every: Line(every)
        told = replay(folder / "run", lambda out, line=line: steered(line, out), folder / "again")
        assert told["same"], (seed, told)


def test_files_of_the_first_run_that_the_onion_names_are_left_alone(tmp_path, spool):
    folder = tmp_path / "run"

    def make(out):
        runner = steered(Spool(spool.path), out)
        runner[StreamProvider].rejected = folder / "bad.jsonl"
        runner[Journal].path = folder / "journal.jsonl"
        return runner

    make(folder).run(steps=5)
    (folder / "bad.jsonl").write_text("left alone")
    before = (folder / "journal.jsonl").read_bytes()
    assert replay(folder, make, tmp_path / "again")["same"]
    assert (folder / "bad.jsonl").read_text() == "left alone"
    assert (folder / "journal.jsonl").read_bytes() == before


def test_batches_that_were_cut_short_are_cut_again(tmp_path):
    line = slowly(4, 200)
    first_run(line, tmp_path / "run")
    line.replay_reader = lambda: Line(line.samples)
    assert replay(tmp_path / "run", lambda out: steered(line, out), tmp_path / "again")["same"] is True


def test_a_source_without_a_replay_reader_is_refused(tmp_path):
    first_run(Line(samples(120)), tmp_path / "run")
    with pytest.raises(CompositionError, match="Line cannot be replayed"):
        replay(tmp_path / "run", lambda out: steered(Line(samples(120)), out), tmp_path / "again")


def test_samples_that_are_gone_are_said(tmp_path, spool):
    first_run(spool, tmp_path / "run")
    pruned = Spool(spool.path, retention=0)
    pruned.position = "60"
    pruned.read(1, 0)
    pruned.commit("60")
    pruned.read(1, 0)
    pruned.close()
    with pytest.raises(DataError):
        replay(tmp_path / "run", lambda out: steered(Spool(spool.path), out), tmp_path / "again")


def test_what_is_no_run_is_refused(tmp_path, spool):
    with pytest.raises(CheckpointError, match="holds no run with a journal"):
        replay(tmp_path, lambda out: None, tmp_path / "again")
    first_run(spool, tmp_path / "run")
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "file").touch()
    with pytest.raises(CheckpointError, match="is not empty"):
        replay(tmp_path / "run", lambda out: None, tmp_path / "again")
    with pytest.raises(CompositionError, match="has no Journal"):
        replay(
            tmp_path / "run",
            lambda out: steered(spool, out).without(ControlServer).without(Journal),
            tmp_path / "other",
        )
    with pytest.raises(CheckpointError, match="save in the folder that it is given"):
        replay(tmp_path / "run", lambda out: steered(Spool(spool.path), tmp_path / "else"), tmp_path / "third")


PROGRAM = """
from onion.online import Spool
from tests.online.control.steered import steered

def make(folder):
    return steered(Spool({path!r}), folder)

other = 3
"""


def test_the_command_prints_what_came_out(tmp_path, spool, capsys, monkeypatch):
    first_run(spool, tmp_path / "run")
    (tmp_path / "my_run.py").write_text(PROGRAM.format(path=str(spool.path)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["replay", "run", "--onion", "my_run:make"]) == 0
    assert json.loads(capsys.readouterr().out)["same"] is True
    (tmp_path / "run" / "journal.jsonl").write_text("")
    assert main(["replay", "run", "--onion", "my_run:make", "--output", "other"]) == 1
    assert json.loads(capsys.readouterr().out)["same"] is False
    for name, words in (
        ("my_run", "not of the form"),
        ("my_run:other", "no function other"),
        ("nowhere:make", "No module named 'nowhere'"),
    ):
        assert main(["replay", "run", "--onion", name]) == 2
        assert words in capsys.readouterr().err
