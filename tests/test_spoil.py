"""A few spoilt files through all commands; and that it cannot miss what comes of one."""

import json
import os
from random import Random

import pytest

from onion.tasks.data.prepared import prepared
from onion.tasks.registry import get_task
from scripts.spoil import changes, trial
from scripts.spoil import files as tables
from tests.fresh_python import module
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

SEEDS = 300


def test_commands_end_well_or_with_a_message():
    words = ["--count", "7", "--seed", "3", "--limit", str(PATIENCE), "--apart", "40"]
    done = module("scripts.spoil", *words)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, told["faults"]) == (0, [])
    assert told["commands"] == sum(told["ended"].values()) >= 35
    assert told["apart"] >= 1
    assert {name.rpartition(" ")[2] for name in told["ended"]} == {"0", "2"}


def files(folder, count, seed):
    folder.mkdir()
    made = changes.spoilt_files(folder, seed)
    return [next(made) for _ in range(count)]


def content(path):
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 1 << 20 else None
    except OSError:  # a name that is too long
        return None


def test_a_seed_tells_which_files_there_are_and_every_way_and_task_has_its_turn(tmp_path):
    one, same, other = (files(tmp_path / name, 39, seed) for name, seed in (("1", 5), ("2", 5), ("3", 6)))
    told = [[(each.task, each.way, content(each.path)) for each in made] for made in (one, same, other)]
    assert told[0] == told[1] != told[2]


def test_every_way_and_task_has_its_turn(tmp_path):
    names = {name for _, name in changes.ROUND}
    assert len(changes.ROUND) > changes.FILES_PER_OVERLONG_LINE  # which comes in the place of another
    made = files(tmp_path / "all", len(changes.ROUND), 1)
    assert len(names - {each.way for each in made}) <= 1
    assert "overlong line" in {each.way for each in made}
    assert {each.task for each in made} == set(tables.TASKS)


def test_a_row_that_has_lost_its_only_cell_can_lose_no_more():
    for seed in range(SEEDS):
        draw = Random(seed)
        assert changes.ragged(draw, tables.good_records("masked-lm", draw), ".tsv")


@pytest.mark.parametrize("task", tables.TASKS)
def test_a_file_is_good_before_it_is_spoilt(tmp_path, task):
    contents = []
    for ending in tables.endings(task):
        path = tmp_path / f"a{ending}"
        path.write_bytes(tables.written(tables.good_records(task, Random(1)), ending))
        read = prepared(path)
        contents.append(len(list(get_task(task, {}).fitted(read).rows(read, labelled=True))))
    assert set(contents) == {tables.ROWS}


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        ({"status": 0, "said": ""}, None),
        ({"status": 2, "said": "onion: a.tsv:3: wrong\n"}, None),
        ({"status": 2, "said": "onion train: wrong\nSee onion train --help.\n"}, None),
        ({"status": 0, "said": "", "logged": ["onion: a.tsv: texts cut: 2"]}, None),
        ({"status": None, "said": "", "broken": "KeyError: 'a'"}, "KeyError"),
        ({"status": 1, "said": "onion: no\n"}, "status 1"),
        ({"status": -9, "said": "onion: no\n"}, "status -9"),
        ({"status": 2, "said": ""}, "says nothing"),
        ({"status": 0, "said": "onion: hm\n"}, "says 1 lines with status 0"),
        ({"status": 2, "said": "onion: a\nonion: b\nonion: c\n"}, "says 3 lines"),
        ({"status": 2, "said": "Traceback (most recent call last):\n"}, "says 'Traceback"),
        ({"status": 2, "said": "numpy: overflow\n"}, "says 'numpy"),
        ({"status": 2, "said": "onion: \x1b[2J\n"}, "says what cannot be seen"),
        ({"status": 0, "said": "", "logged": ["onion: \ufeff"]}, "says what cannot be seen"),
        ({"status": 2, "said": f"onion: {'x' * 1000}\n"}, "says a line of 1007 characters"),
    ],
)
def test_how_a_command_ended(ended, told):
    faults = list(trial.faults_of_end(trial.Ended(**ended), apart=False))
    assert not faults if told is None else told in " ".join(faults)


def test_a_process_may_log_before_its_message():
    for ended in (trial.Ended(2, "onion: note\n" * 3 + "onion: wrong\n"), trial.Ended(0, "onion: note\n")):
        assert list(trial.faults_of_end(ended, apart=True)) == []


def test_a_hang_an_error_and_an_interrupt_are_found_out(tmp_path, monkeypatch):
    command = trial.Command("train", [], tmp_path / "out")

    def signal_and_wait(words):
        os.kill(os.getpid(), trial.signal.SIGALRM)  # as after so many seconds
        return 0

    monkeypatch.setattr(trial, "main", signal_and_wait)
    assert "Hang: too long" in trial.run_here(command, PATIENCE).broken
    monkeypatch.setattr(trial, "main", lambda words: {}["a"])
    assert "KeyError: 'a'" in trial.run_here(command, PATIENCE).broken
    monkeypatch.setattr(trial, "main", lambda words: trial.TERMINATED)
    with pytest.raises(KeyboardInterrupt):
        trial.run_here(command, PATIENCE)
    monkeypatch.setattr(trial, "PROGRAM", "import signal; signal.pause()")
    assert "hangs" in trial.run_apart(command, 1).broken


def test_half_written_features_and_output_are_found_out_and_removed(tmp_path):
    folder = tmp_path / "features"
    assert trial.kept_features(folder) == {}
    (folder / "store").mkdir(parents=True)
    (folder / "store" / "ids.npy").write_bytes(b"1")
    before = trial.kept_features(folder)
    assert list(trial.faults_of_features(folder, before)) == []
    (folder / ".part-1").mkdir()
    (folder / "half.json").write_text("{")
    (folder / "whole.json").write_text('{"value": 1, "sum": 2}')
    (folder / "store" / "ids.npy").write_bytes(b"2")
    faults = sorted(trial.faults_of_features(folder, before))
    assert faults == [
        "the features .part-1 are not whole",
        "the features half.json are not whole",
        "the features store have changed",
    ]
    assert [path.name for path in folder.iterdir()] == ["store"]
    out = tmp_path / "out"
    assert list(trial.faults_of_output(out, 2)) == []
    out.write_text("{}")
    assert list(trial.faults_of_output(out, 0)) == []
    assert list(trial.faults_of_output(out, 2)) == ["out is there"]
    trial.remove(out)
    out.mkdir()
    (out / "run.json").write_text("{}")
    assert list(trial.faults_of_output(out, 2)) == []
    (out / ".a.partial").write_text("")
    assert list(trial.faults_of_output(out, 0)) == [".a.partial is left"]
    trial.remove(out)
    assert not out.exists()
