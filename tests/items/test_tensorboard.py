"""TensorBoard: scalars of loss, readings and metrics in an event file."""

import pytest

from onion import Runner, RunnerItem, TensorBoard
from onion.testing import Batches, Failing, PlannedError

pytest.importorskip("tensorboardX")


class Costing(RunnerItem):
    def on_batch(self, state):
        state.loss = float(state.step)
        state.report({"accuracy": 0.5})

    def log_values(self):
        return {"learning_rate": 0.1}


def content_of(folder):
    (file,) = folder.glob("events*")
    return file.read_bytes()


@pytest.mark.parametrize(("every", "times"), [(2, 2), (100, 0)])
def test_loss_readings_and_metrics_are_written_every_period(every, times, tmp_path):
    Runner(TensorBoard(tmp_path, every=every), Costing(), Batches(4)).run(passes=1)
    content = content_of(tmp_path)
    assert [content.count(name) for name in (b"loss", b"learning_rate", b"accuracy")] == [times] * 3


def test_the_file_is_closed_after_an_error(tmp_path):
    board = TensorBoard(tmp_path, every=1)
    with pytest.raises(PlannedError):
        Runner(board, Failing("on_batch", "out", 2), Costing(), Batches(4)).run(passes=1)
    assert content_of(tmp_path).count(b"loss") == 2
