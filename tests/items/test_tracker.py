"""Tracker: what each tool has of a run, of a resumed one too; and a client that fails costs the run nothing."""

import json
import sys

import numpy as np
import pytest

from onion import (
    CompositionError,
    DataProvider,
    Observer,
    OnionError,
    Runner,
    RunnerItem,
    Saver,
    TensorBoardWriter,
    Tester,
    Tracker,
)
from onion.checkpointing.checkpoint import steps_in
from onion.monitoring.writers.writer import Writer
from onion.testing import Batches, Failing, PlannedError
from tests.monitoring.writers.tools import HISTOGRAM, PICTURE, TOOLS

SLOW = {"wandb", "mlflow"}
"""What starts a process, or makes a database."""

every_tool = pytest.mark.parametrize(
    "tool", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in TOOLS]
)


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)


class Costing(RunnerItem):
    def on_batch(self, state):
        state.loss = 1 / (1 + state.step)
        yield
        if state.step == 3:
            state.report({"accuracy": np.float32(0.5)})

    def log_values(self):
        return {"learning_rate": 0.25}


def drawn(state):
    if state.step == 3:
        state.record_scalar("tower", 7)
        state.record_histogram("weights/fc", np.arange(6.0))
        state.record_image("shape", np.zeros([4, 5, 3], np.uint8))


@every_tool
def test_a_tool_has_every_figure_at_its_step_and_the_settings(tool, tmp_path):
    tool = TOOLS[tool]
    settings = {"rate": 0.1, "tasks": {"a": {"train": "a.tsv"}}}
    tracker = Tracker(tool.writer(tmp_path), 2, settings)
    Runner(tracker, Observer(on_batch_end=drawn), Costing(), Batches(4)).run(passes=1)
    found = tool.found(tmp_path)
    expected = [(step, name, value) for step in (2, 3, 4) for name, value in [("loss", 1 / step), *RATE]]
    expected += [(3, "accuracy", 0.5), (3, "tower", 7.0), (3, "shape", (PICTURE, 4, 5))]
    expected += [(3, "weights/fc", (HISTOGRAM, 6))] if tool.histograms else []
    assert sorted(map(rounded, found.points), key=repr) == sorted(map(rounded, expected), key=repr)
    assert "rate" in found.settings
    assert "0.1" in found.settings
    assert "a.tsv" in found.settings


RATE = [("learning_rate", 0.25)]


def rounded(point):
    step, name, value = point
    return step, name, value if isinstance(value, tuple) else round(value, 6)


@every_tool
def test_a_resumed_run_goes_on_where_it_was_and_no_point_stands_twice(tool, tmp_path):
    tool = TOOLS[tool]

    def onion(*items):
        tracker = Tracker(tool.writer(tmp_path), 1, {"rate": 0.1})
        return Runner(Saver(tmp_path / "out", every=3), tracker, *items, Costing(), DataProvider(list(range(8)), 1))

    with pytest.raises(PlannedError):
        onion(Failing("on_batch", "in", 5)).run(passes=1)
    assert steps_in(tmp_path / "out") == [3]
    onion().run(passes=1)
    found = tool.found(tmp_path)
    losses = [point for point in found.points if point[1] == "loss"]
    expected = [(step, "loss", 1 / step) for step in range(1, 9)]
    assert list(map(rounded, losses if not tool.repeats else sorted({*losses}))) == list(map(rounded, expected))
    if tool.repeats:  # it has a folder for each process, and the second begins at the checkpoint
        assert [step for step, _, _ in losses] == [1, 2, 3, 4, 5, 4, 5, 6, 7, 8]
    assert found.settings.count("0.1") == 1


def test_a_new_run_in_a_used_folder_hides_the_old_one(tmp_path):
    tool = TOOLS["tensorboard"]
    for last in (4, 2):
        Runner(Tracker(tool.writer(tmp_path), 1), Costing(), Batches(last)).run(passes=1)
    assert {step for step, _, _ in tool.found(tmp_path).points} == {1, 2}


def test_visualdl_keeps_the_records_of_another_run(tmp_path):
    for last in (4, 2):
        Runner(Tracker(TOOLS["visualdl"].writer(tmp_path), 1), Costing(), Batches(last)).run(passes=1)
    old, new = sorted((tmp_path / "visualdl").iterdir())
    assert (old.name, new.name) == ("vdlrecords.onion-1.log", "vdlrecords.onion.log")
    assert old.stat().st_size > new.stat().st_size


@pytest.mark.parametrize(
    ("tool", "module", "extra"),
    [
        ("tensorboard", "tensorboardX.event_file_writer", "tensorboard"),
        ("visualdl", "visualdl.component.base_component", "visualdl"),
        ("wandb", "wandb", "wandb"),
        ("mlflow", "mlflow", "mlflow"),
    ],
)
def test_a_tool_that_is_not_installed_is_an_error_with_the_extra(tool, module, extra, tmp_path, monkeypatch):
    writer = TOOLS[tool].writer(tmp_path) if tool != "mlflow" else __import__("onion").MLflowWriter(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OnionError, match=rf"needs {module}: pip install 'onion-paddle\[{extra}\]', or leave"):
        Runner(Tracker(writer), Batches(1)).run(passes=1)


@pytest.mark.slow
def test_a_run_that_mlflow_does_not_have_is_not_gone_on_in(tmp_path):
    tracker = Tracker(TOOLS["mlflow"].writer(tmp_path))
    tracker.load_state_dict({"logged": "{}", "place": json.dumps({"run": "abc"})})
    with pytest.raises(OnionError, match=r"MLflow has no run abc, in which .*; set MLFLOW_TRACKING_URI as it was"):
        Runner(tracker, Batches(1)).run(passes=1)


# -- a client that fails -----------------------------------------------------------------------------------------------


class Breaking(Writer):
    """A client that fails in some of its methods, and tells what it was asked."""

    name = "breaking"
    remedy = "mend it"

    def __init__(self, *broken):
        self.broken, self.asked = broken, []

    def _ask(self, what):
        self.asked.append(what)
        if what in self.broken:
            raise ConnectionError("no network.\nDetails that nobody reads")

    def open(self, step, place, settings):
        self._ask("open")

    def write(self, step, values):
        self._ask("write")

    def place(self):
        self._ask("place")
        return {"id": "a"}

    def close(self, failed):
        self._ask("close")


def test_a_client_that_cannot_begin_is_an_error_with_what_to_do(tmp_path):
    with pytest.raises(OnionError, match="breaking cannot begin: no network; mend it; or leave it out of the loggers"):
        Runner(Tracker(Breaking("open")), Batches(1)).run(passes=1)


@pytest.mark.parametrize(
    ("broken", "said", "asked"),
    [
        (["write"], "no network; nothing is written there from step 1 on", ["open", "write", "close"]),
        (["write", "close"], "no network; nothing is written there from step 1 on", ["open", "write", "close"]),
        (["place"], "no network; nothing is written there from here on", ["open", *["write"] * 2, "place", "close"]),
        (["close"], "its last points may be missing", ["open", *["write", "write", "place"] * 2, "place", "close"]),
    ],
    ids=["writing", "writing and closing", "place", "closing"],
)
def test_the_run_goes_on_without_a_client_that_fails(broken, said, asked, tmp_path, caplog):
    writer = Breaking(*broken)
    state = Runner(Saver(tmp_path, every=2), Tracker(writer, 1), Batches(4)).run(passes=1)
    assert (state.step, steps_in(tmp_path)) == (4, [2, 4])
    (warning,) = caplog.messages
    assert said in warning
    assert warning.endswith("the run goes on; mend it")
    assert writer.asked == asked


@pytest.mark.parametrize("how", ["error", "stop", "end"])
def test_a_client_is_closed_once_and_told_of_an_error(how, tmp_path):
    closed = []

    class Closing(Breaking):
        def close(self, failed):
            closed.append(failed)

    act = {"error": Failing("on_batch", "out", 2), "stop": Observer(on_batch_end=lambda state: state.stop("enough"))}
    runner = Runner(Tracker(Closing(), 1), *([act[how]] if how in act else []), Batches(4))
    if how == "error":
        with pytest.raises(PlannedError):
            runner.run(passes=1)
    else:
        runner.run(passes=1)
    assert closed == [how == "error"]


# -- beside others -----------------------------------------------------------------------------------------------------


class Kept(Breaking):
    """Keeps what it is given."""

    name = "kept"

    def __init__(self):
        super().__init__()
        self.points = []

    def write(self, step, values):
        self.points += [(step, name, value) for name, value in values.items()]


def test_what_a_test_records_has_the_name_of_the_test_and_the_step_of_the_training(tmp_path):
    kept = Tracker(Kept(), 100)
    test = Runner(kept, Observer(on_batch_end=lambda state: state.record_scalar("seen", state.step)), Batches(3))
    Runner(kept, Tester(test, every=2, name="dev"), Batches(5)).run(passes=1)
    assert kept.writer.points == [(2, "dev.seen", 3.0), (4, "dev.seen", 3.0)]


def test_two_trackers_have_the_names_of_their_tools_and_a_second_of_one_needs_another(tmp_path):
    curves = Tracker(TensorBoardWriter(tmp_path))
    assert [item.name for item in Runner(curves, Tracker(Kept()), Batches(1)).items[:2]] == ["tensorboard", "kept"]
    with pytest.raises(CompositionError, match="two items are named 'kept'"):
        Runner(Tracker(Kept()), Tracker(Kept()), Batches(1))
    Runner(Tracker(Kept()), Tracker(Kept(), name="other"), Batches(1))


def test_something_else_than_a_writer_is_refused():
    with pytest.raises(CompositionError, match="Tracker takes a writer, not a str"):
        Tracker("curves")


def test_a_second_run_begins_something_new(tmp_path):
    places = []

    class Placed(Breaking):
        def open(self, step, place, settings):
            places.append(dict(place))

    runner = Runner(Tracker(Placed(), 1), Batches(2))
    for _ in range(2):
        runner.run(passes=1)
    tracker = runner[Tracker]
    saved = tracker.state_dict()
    assert json.loads(saved["place"]) == {"id": "a"}
    tracker.load_state_dict(saved)
    runner.run(passes=1)
    assert places == [{}, {}, {"id": "a"}]
