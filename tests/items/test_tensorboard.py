"""TensorBoard: scalars of loss, readings and metrics in an event file."""

import pytest

from onion import Observer, Runner, RunnerItem, TensorBoard
from onion.testing import Batches, Failing, PlannedError

pytest.importorskip("tensorboardX")


class Costing(RunnerItem):
    def on_batch(self, state):
        state.loss = float(state.step)

    def log_values(self):
        return {"learning_rate": 0.1}


def content_of(folder):
    (file,) = folder.glob("events*")
    return file.read_bytes()


def test_cost_readings_and_metrics_are_written(tmp_path):
    report = Observer(on_batch_end=lambda state: state.report({"accuracy": 0.5}))
    Runner(TensorBoard(tmp_path, every=2), report, Costing(), Batches(4)).run(passes=1)
    content = content_of(tmp_path)
    for name in (b"loss", b"learning_rate", b"accuracy"):
        assert content.count(name) == 2


def test_nothing_is_written_between_periods(tmp_path):
    Runner(TensorBoard(tmp_path, every=100), Costing(), Batches(4)).run(passes=1)
    assert b"loss" not in content_of(tmp_path)


def test_the_file_is_closed_after_an_error(tmp_path):
    board = TensorBoard(tmp_path, every=1)
    with pytest.raises(PlannedError):
        Runner(board, Failing("on_batch", "out", 2), Costing(), Batches(4)).run(passes=1)
    assert content_of(tmp_path).count(b"loss") == 2
