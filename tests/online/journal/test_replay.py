"""replay: a controlled run that is repeated is bit-identical, and a different one is not."""

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
from tests.online.control.steered import PLAN, run, samples, slowly, steered, weights
from tests.online.toys import Line

pytestmark = pytest.mark.slow


@pytest.fixture
def spool(tmp_path):
    with Spool(tmp_path / "samples.db").writer() as writer:
        writer.write(samples(120))
    return Spool(tmp_path / "samples.db")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def again(tmp_path, folder, spool):
    """A function that replays the run in the folder."""
    return lambda: replay(folder, lambda out: steered(Spool(spool.path), out), tmp_path / "again")


def first_run(source, folder, plan=PLAN, steps=16):
    return run(folder, plan, source=source, steps=steps)[0]


def test_a_controlled_run_is_repeated_bit_by_bit(tmp_path, folder, spool):
    runner = first_run(spool, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    made = []

    def make(out):
        made.append(steered(Spool(spool.path), out))
        return made[0]

    found = replay(folder, make, tmp_path / "again")
    assert found == {"step": 16, "commands": 9, "same": True, "differs": []}
    assert weights(made[0]) == weights(runner)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_replay_does_not_disturb_the_run_when_it_continues(folder, spool, again):
    first_run(spool, folder)
    waiting = spool.waiting()
    spool.close()
    again()
    assert spool.waiting() == waiting
    spool.close()
    first_run(spool, folder, {}, steps=18)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"parameter_updater.learning_rate": 0.2', '"parameter_updater.learning_rate": 0.3', False),
        ('"command": "enable"', '"command": "disable"', False),
        ('"command": "pause"', '"command": "resume"', True),
    ],
)
def test_another_journal_gives_another_run(folder, spool, again, old, new, same):
    first_run(spool, folder)
    journal = (folder / "journal.jsonl").read_text()
    assert old in journal
    (folder / "journal.jsonl").write_text(journal.replace(old, new))
    found = again()
    assert found["same"] is same
    assert ("gradient_machine/fc.weight" in found["differs"]) is not same


def test_a_run_that_was_stopped_and_resumed_is_repeated_to_its_end(folder, spool, again):
    first_run(spool, folder, {**PLAN, 6: [("stop", {})]})
    first_run(spool, folder, {**PLAN, 9: [("stop", {}), ("pause", {})]})
    first_run(spool, folder, PLAN)
    found = again()
    assert (found["same"], found["step"]) == (True, 16)


def test_commands_after_the_last_step_are_repeated(folder, spool, again):
    first_run(spool, folder, {6: [("set", {"learning_rate": 0.3}), ("pause", {}), ("stop", {})]})
    assert again() == {"step": 6, "commands": 3, "same": True, "differs": []}


def bad(count):
    return [{"x": "no", "y": [1.0]} for _ in range(count)]


def test_rejected_samples_and_random_batches_are_repeated(tmp_path):
    """Good and bad samples arrive in portions; what follows the journal's last row depends on the replay's clock."""
    for seed in range(12):
        folder, chance = tmp_path / str(seed), random.Random(seed)
        every = [sample for good in samples(200) for sample in (*bad(chance.choice([0, 0, 0, 5])), good)]

        def come(line, chance=chance, every=every):
            there = len(line.samples)
            line.samples += every[there : there + chance.randint(0, 5)]

        line = Line((), come)
        first_run(line, folder / "run", {3: [("set", {"learning_rate": 0.3})]}, steps=10)
        line.replay_reader = lambda every=every: Line(every)
        found = replay(folder / "run", lambda out, line=line: steered(line, out), folder / "again")
        assert found["same"], (seed, found)


def test_files_of_the_original_run_named_by_the_runner_are_not_changed(tmp_path, folder, spool):
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


def test_batches_that_were_cut_short_are_cut_again(tmp_path, folder):
    line = slowly(4, 200)
    first_run(line, folder)
    line.replay_reader = lambda: Line(line.samples)
    assert replay(folder, lambda out: steered(line, out), tmp_path / "again")["same"] is True


def test_a_source_without_a_replay_reader_is_refused(tmp_path, folder):
    first_run(Line(samples(120)), folder)
    with pytest.raises(CompositionError, match="Line cannot be replayed"):
        replay(folder, lambda out: steered(Line(samples(120)), out), tmp_path / "again")


def test_removed_samples_are_an_error(folder, spool, again):
    first_run(spool, folder)
    pruned = Spool(spool.path, retention=0)
    pruned.position = "60"
    pruned.read(1, 0)
    pruned.commit("60")
    pruned.read(1, 0)
    pruned.close()
    with pytest.raises(DataError):
        again()


def test_what_cannot_be_replayed_is_refused(tmp_path, folder, spool, again):
    with pytest.raises(CheckpointError, match="contains no run with a journal"):
        again()
    first_run(spool, folder)
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "file").touch()
    with pytest.raises(CheckpointError, match="is not empty"):
        again()
    with pytest.raises(CompositionError, match="has no Journal"):
        replay(folder, lambda out: steered(spool, out).without(ControlServer).without(Journal), tmp_path / "other")
    with pytest.raises(CheckpointError, match="save in the folder that it is given"):
        replay(folder, lambda out: steered(Spool(spool.path), tmp_path / "else"), tmp_path / "third")


PROGRAM = """
from onion.online import Spool
from tests.online.control.steered import steered

def make(folder):
    return steered(Spool({path!r}), folder)

other = 3
"""


def test_the_command_prints_the_result(tmp_path, spool, capsys, monkeypatch):
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
