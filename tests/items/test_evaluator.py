"""Evaluator: a metric over a pass."""

import pytest

from onion import DataProvider, Evaluator, Every, Runner, RunnerItem, Saver, SkipIf
from onion.testing import Batches, Failing, PlannedError


class Sum:
    def __init__(self):
        self.calls = []

    def reset(self):
        self.calls.append("reset")
        self.sum = 0

    def update(self, outputs, batch):
        self.calls.append((outputs, batch))
        self.sum += outputs

    def result(self):
        return {"sum": self.sum, "twice": 2 * self.sum}


class Square(RunnerItem):
    def on_batch(self, state):
        state.outputs = state.batch**2


def test_every_batch_is_fed_with_its_outputs_and_the_figures_are_reported_at_the_end():
    metric = Sum()
    state = Runner(Batches(4), Evaluator(metric), Square()).run(passes=1)
    assert metric.calls == ["reset", (0, 0), (1, 1), (4, 2), (9, 3)]
    assert state.metrics == {"sum": 14, "twice": 28}
    assert state.reported == {"sum": 4, "twice": 4}


def test_batches_that_an_item_inside_leaves_out_are_not_measured():
    metric = Sum()
    state = Runner(Batches(5), Evaluator(metric), SkipIf(lambda state: state.batch % 2), Square()).run(passes=2)
    assert metric.calls == ["reset", (0, 0), (4, 2), (16, 4)] * 2
    assert state.metrics["sum"] == 20


def test_batches_for_which_the_network_is_not_there_are_not_measured():
    metric = Sum()
    Runner(Batches(5), Evaluator(metric), Every(2, Square())).run(passes=1)
    assert metric.calls == ["reset", (1, 1), (9, 3)]


def test_in_a_nested_runner_it_measures_what_is_inside():
    metric = Sum()
    Runner(Batches(3), Runner(Evaluator(metric), Square())).run(passes=1)
    assert metric.calls == ["reset", (0, 0), (1, 1), (4, 2)]


def test_every_pass_begins_anew():
    metric = Sum()
    state = Runner(Batches(4), Evaluator(metric), Square()).run(passes=2)
    assert state.metrics["sum"] == 14
    assert metric.calls.count("reset") == 2


def test_after_a_cut_pass_nothing_is_reported():
    state = Runner(Batches(4), Evaluator(Sum()), Square()).run(steps=3)
    assert state.metrics == {}


def test_after_an_error_nothing_is_reported_and_the_next_run_is_right():
    runner = Runner(Batches(4), Evaluator(Sum()), Failing("on_batch", "out", 2, times=1), Square())
    with pytest.raises(PlannedError):
        runner.run(passes=1)
    assert runner.run(passes=1).metrics["sum"] == 14


class SavedSum(Sum):
    def state_dict(self):
        return {"sum": self.sum}

    def load_state_dict(self, saved):
        self.sum = saved["sum"]


def resumed_in_mid_pass(metric, folder):
    """Run three of eight batches, then the rest with new objects."""
    Runner(Saver(folder), DataProvider(range(8), 1), Evaluator(metric()), Double()).run(steps=3)
    return Runner(Saver(folder), DataProvider(range(8), 1), Evaluator(metric()), Double()).run(passes=1)


class Double(RunnerItem):
    def on_batch(self, state):
        state.outputs = 2 * int(state.batch[0])


def test_a_pass_that_was_resumed_ends_with_the_figures_of_the_whole_pass(tmp_path):
    assert resumed_in_mid_pass(SavedSum, tmp_path).metrics["sum"] == 56


def test_the_pass_after_a_resumed_one_begins_anew(tmp_path):
    Runner(Saver(tmp_path), DataProvider(range(8), 1), Evaluator(SavedSum()), Double()).run(passes=1)
    state = Runner(Saver(tmp_path), DataProvider(range(8), 1), Evaluator(SavedSum()), Double()).run(passes=2)
    assert state.metrics["sum"] == 56


def test_a_metric_that_cannot_be_saved_says_so_when_its_pass_is_resumed(tmp_path, caplog):
    with caplog.at_level("WARNING", "onion"):
        Runner(Saver(tmp_path), DataProvider(range(8), 1), Evaluator(Sum()), Double()).run(steps=3)
        assert not caplog.messages
        Runner(Saver(tmp_path), DataProvider(range(8), 1), Evaluator(Sum()), Double()).run(steps=5)
    said = "evaluator: resumed in the middle of a pass, and its metric has no state_dict; it measures the rest"
    assert caplog.messages == [said]


@pytest.mark.parametrize(
    ("metric", "said"), [(SavedSum, "the checkpoint has nothing of its metric"), (Sum, "its metric has no state_dict")]
)
def test_an_evaluator_that_is_new_in_mid_pass_measures_the_rest_and_says_so(metric, said, tmp_path, caplog):
    Runner(Saver(tmp_path), DataProvider(range(8), 1), Double()).run(steps=3)
    onion = Runner(Saver(tmp_path, resume="force"), DataProvider(range(8), 1), Evaluator(metric()), Double())
    with caplog.at_level("WARNING", "onion"):
        state = onion.run(passes=1)
    assert state.metrics["sum"] == 2 * sum(range(3, 8))
    assert caplog.messages[-1] == f"evaluator: resumed in the middle of a pass, and {said}; it measures the rest"


def test_what_an_evaluator_once_loaded_is_of_that_run_alone(tmp_path):
    evaluator = Evaluator(SavedSum())
    evaluator.load_state_dict({"sum": 100})
    Runner(DataProvider(range(8), 1), evaluator, Double()).run(passes=1)
    Runner(Saver(tmp_path), DataProvider(range(8), 1), Double()).run(steps=3)
    state = Runner(Saver(tmp_path, resume="force"), DataProvider(range(8), 1), evaluator, Double()).run(passes=1)
    assert state.metrics["sum"] == 2 * sum(range(3, 8))
