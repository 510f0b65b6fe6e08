"""Evaluator: a metric over a pass."""

import numpy as np
import paddle
import pytest

from onion import CompositionError, DataProvider, Evaluator, Every, Runner, RunnerItem, Saver, SkipIf
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


class SavedSum(Sum):
    def state_dict(self):
        return {"sum": self.sum}

    def load_state_dict(self, saved):
        self.sum = saved["sum"]


class Square(RunnerItem):
    def on_batch(self, state):
        state.outputs = state.batch**2


MEASURED = {
    "all": (lambda evaluator: [evaluator, Square()], range(6)),
    "not skipped": (lambda evaluator: [evaluator, SkipIf(lambda state: state.batch % 2), Square()], [0, 2, 4]),
    "those with outputs": (lambda evaluator: [evaluator, Every(2, Square())], [1, 3, 5]),
    "in a nested runner": (lambda evaluator: [Runner(evaluator, Square())], range(6)),
}


@pytest.mark.parametrize("which", MEASURED)
def test_each_pass_measures_the_batches_that_a_network_inside_worked_on(which):
    rings, measured = MEASURED[which]
    metric = Sum()
    state = Runner(Batches(6), *rings(Evaluator(metric))).run(passes=2)
    assert metric.calls == ["reset", *((batch**2, batch) for batch in measured)] * 2
    whole = sum(batch**2 for batch in measured)
    assert state.metrics == {"sum": whole, "twice": 2 * whole}
    assert state.reported == dict.fromkeys(state.metrics, state.step)


def test_nothing_is_reported_after_a_cut_pass():
    assert Runner(Batches(4), Evaluator(Sum()), Square()).run(steps=3).metrics == {}


def test_nothing_is_reported_after_an_error_and_the_next_run_is_right():
    runner = Runner(Batches(4), Evaluator(Sum()), Failing("on_batch", "out", 2, times=1), Square())
    with pytest.raises(PlannedError):
        runner.run(passes=1)
    assert runner.run(passes=1).metrics["sum"] == 14


WHOLE, REST = sum(i**2 for i in range(8)), sum(i**2 for i in range(3, 8))


def onion(folder, *evaluator):
    return Runner(Saver(folder, resume="force"), DataProvider(range(8), 1, collate=sum), *evaluator, Square())


def test_a_resumed_pass_ends_with_the_figures_of_the_whole_pass(tmp_path):
    onion(tmp_path, Evaluator(SavedSum())).run(steps=3)
    assert onion(tmp_path, Evaluator(SavedSum())).run(passes=1).metrics["sum"] == WHOLE
    assert onion(tmp_path, Evaluator(SavedSum())).run(passes=2).metrics["sum"] == WHOLE, "the next pass begins at 0"


@pytest.mark.parametrize(
    ("before", "metric", "said"),
    [
        ([Evaluator(Sum())], Sum, "its metric has no state_dict"),
        ([], Sum, "its metric has no state_dict"),
        ([], SavedSum, "the checkpoint has no state of its metric"),
    ],
    ids=["cannot be saved", "new and cannot be saved", "new"],
)
def test_a_metric_that_was_not_saved_measures_the_rest_with_a_warning(before, metric, said, tmp_path, caplog):
    with caplog.at_level("WARNING", "onion"):
        onion(tmp_path, *before).run(steps=3)
        assert not caplog.messages
        state = onion(tmp_path, Evaluator(metric())).run(passes=1)
    assert state.metrics["sum"] == REST
    assert caplog.messages[-1] == f"evaluator: resumed in the middle of a pass, and {said}; it measures the rest"


def test_what_an_evaluator_once_loaded_does_not_count_in_the_next_run(tmp_path):
    evaluator = Evaluator(SavedSum())
    evaluator.load_state_dict({"sum": 100})
    Runner(DataProvider(range(8), 1, collate=sum), evaluator, Square()).run(passes=1)
    onion(tmp_path).run(steps=3)
    assert onion(tmp_path, evaluator).run(passes=1).metrics["sum"] == REST


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Sum, r"Evaluator takes a metric, not a class: Evaluator\(Sum\(\.\.\.\)\)"),
        ("accuracy", r"str has no reset\(\); a metric has reset\(\), update\(outputs, batch\) and result\(\)\.$"),
        (paddle.metric.Accuracy(), r"Accuracy has no result\(\); .*; the notebook docs/tutorials/network.ipynb wraps"),
    ],
)
def test_what_is_no_metric_is_refused(metric, message):
    with pytest.raises(CompositionError, match=message):
        Evaluator(metric)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (0.5, r"evaluator: result\(\) of Sum must return figures by name, such as {'accuracy': 0.5}, got 0.5\.$"),
        (None, r"figures by name, .*, got None\.$"),
        ({"sum": 1, "grade": "good"}, r"evaluator: result\(\) of Sum: 'grade' must be a number, got 'good'\.$"),
        ({"recalls": [0.5, 1.0]}, r"'recalls' must be a number, got \[0\.5, 1\.0\]\.$"),
    ],
)
def test_a_result_that_is_not_numbers_by_name_is_refused(result, message):
    metric = Sum()
    metric.result = lambda: result
    with pytest.raises(CompositionError, match=message):
        Runner(Batches(2), Evaluator(metric), Square()).run(passes=1)


def test_numbers_of_paddle_and_numpy_are_figures():
    metric = Sum()
    metric.result = lambda: {"a": paddle.to_tensor(0.5), "b": np.float32(0.25)}
    assert Runner(Batches(2), Evaluator(metric), Square()).run(passes=1).metrics == {"a": 0.5, "b": 0.25}
