"""Relative paths stay where they were meant, though a user's code calls os.chdir."""

import json
import os
from pathlib import Path

import pytest

from onion import DataProvider, Logger, Preemption, Runner, RunnerItem, Saver, TensorBoardWriter, Tracker
from onion.checkpointing import checkpoint
from onion.models import hub
from onion.online import Folder, Journal, Spool, StreamProvider
from onion.paths import anchored
from onion.testing import Batches

ROWS = [{"x": 1}, {"x": 2}, {"y": 0}, {"x": 3}]


class Wanders(RunnerItem):
    """A user's item that changes the current folder in the midst of the run."""

    passive = True

    def __init__(self, folder, step=2):
        self.folder, self.step = folder, step

    def on_batch(self, state):
        yield
        if state.step == self.step:
            os.chdir(self.folder)


@pytest.fixture
def here(tmp_path, monkeypatch):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def there(tmp_path):
    """Where the run wanders to; nothing may be written there."""
    place = tmp_path / "there"
    place.mkdir()
    yield place
    assert list(place.iterdir()) == []


def below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "step-" not in path.parent.name)


@pytest.mark.parametrize("background", [False, True])
def test_checkpoints_and_logs_go_on_where_they_began_and_are_found_again(background, here, there):
    def onion():
        return Runner(
            Saver("out", every=1, async_save=background),
            Logger("out/log.jsonl", 1),
            Wanders(there),
            DataProvider(list(range(6)), 1, prefetch=0),
        )

    onion().run(passes=1, steps=4)
    assert below(here) == ["out", "out/log.jsonl", "out/step-00000003", "out/step-00000004"]
    os.chdir(here)
    assert onion().run(passes=1).step == 6
    assert checkpoint.steps_in(here / "out") == [5, 6]
    assert (here / "out" / "log.jsonl").read_text().count("\n") == 6


def test_a_wanderer_on_the_way_into_the_run_changes_nothing_either(here, there):
    class First(RunnerItem):
        def initialize(self, state):
            os.chdir(there)

    Runner(First(), Saver("out"), Logger("log.jsonl"), DataProvider([1, 2], 1)).run(passes=1)
    assert below(here) == ["log.jsonl", "out", "out/step-00000002"]


def test_curves_are_drawn_where_they_began(here, there):
    pytest.importorskip("tensorboardX")
    board = Tracker(TensorBoardWriter("curves"), every=1)
    os.chdir(there)
    Runner(board, Batches(2)).run(passes=1)
    assert len(list((here / "curves").iterdir())) == 1


def test_an_announcement_is_looked_for_where_it_was_meant(here, there):
    (here / "soon").touch()
    preemption = Preemption("soon")
    os.chdir(there)
    assert Runner(preemption, Batches(3)).run(passes=1).stopped == "the machine ends soon"


@pytest.mark.parametrize("kind", ["spool", "folder"])
def test_a_stream_its_record_and_what_it_rejects_stay_in_their_places(kind, here, there):
    source = Spool("samples.db") if kind == "spool" else Folder("inbox", settle=0)
    if kind == "spool":
        writer = source.writer()
    else:
        (here / "inbox").mkdir()
        (here / "inbox" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    def whole(sample):
        return {"x": sample["x"]}

    data = StreamProvider(source, 1, pass_every=3, prepare=whole, rejected="rejected.jsonl")
    runner = Runner(Saver("out", every=1), Journal("journal.jsonl"), data, Wanders(there, 1))
    os.chdir(there)
    if kind == "spool":
        with writer:
            writer.write(ROWS)
    os.chdir(here)
    runner.run(passes=1)
    os.chdir(here)
    made = {"spool": ["samples.db"], "folder": ["inbox"]}[kind]
    assert {"out", "journal.jsonl", "rejected.jsonl", *made} <= {path.name for path in here.iterdir()}


def test_the_folder_of_models_and_features_is_told_as_it_is_meant(here, there, monkeypatch):
    monkeypatch.setenv("ONION_HOME", "cache")
    place = hub.home()
    os.chdir(there)
    assert place == here / "cache"


def test_a_path_is_what_it_was_when_it_was_given(here, there):
    assert "Saver(out)" in str(Runner(Saver("out"), Batches(1)))
    assert f"Saver({here.parent / 'out'})" in str(Runner(Saver(here.parent / "out"), Batches(1)))
    given = [anchored("a/b"), anchored(Path("../a"))]
    os.chdir(there)
    assert given == [here / "a" / "b", here / ".." / "a"]
    assert anchored("/a") == Path("/a")
