"""Best: whether the figure told the better checkpoints from the worse, said at the end of a run."""

import math

import pytest

from onion import DataProvider, Observer, Runner, Saver, State
from onion.monitoring.best import Best


def run(folder, values, mode="max", until=None):
    """Report a value after each step, or none for None."""

    def report(state):
        if values[state.step - 1] is not None:
            state.report({"dev.f1": values[state.step - 1], "dev.loss": 1 / state.step})

    saver = Saver(folder, every=1, monitor="dev.f1", mode=mode)
    Runner(saver, DataProvider(range(len(values)), 1), Observer(on_batch_end=report)).run(passes=1, steps=until)


@pytest.mark.parametrize(
    ("values", "mode", "told"),
    [
        ([0.0, 0.0, 0.0], "max", "dev.f1 was 0 at each of 3 tests, so the best checkpoint is the first, of step 1"),
        ([0.0], "max", "dev.f1 was 0 at the only test, so the best checkpoint is the first, of step 1"),
        ([0.25, 0.25], "max", "dev.f1 was 0.25 at each of 2 tests"),
        ([0.25, 0.25], "min", "dev.f1 was 0.25 at each of 2 tests"),
        ([math.nan, math.nan], "max", "dev.f1 was nan at each of 2 tests, so there is no best checkpoint"),
        ([None], "max", None),  # no test
        ([math.nan], "max", None),
        ([0.0], "min", None),
        ([0.5], "max", None),
        ([0.5, 0.5, 0.4], "max", None),
        ([0.4, 0.5], "max", None),
        ([0.0, 0.0, 0.1], "max", None),
        ([math.nan, 0.1, 0.1], "max", None),
        ([0.1, math.nan], "max", None),
    ],
)
def test_it_is_told_at_the_end_where_the_figure_decides_nothing(tmp_path, caplog, values, mode, told):
    run(tmp_path, values, mode)
    assert len(caplog.messages) == (told is not None)
    if told is not None:
        assert told in caplog.text
        assert caplog.messages[0].startswith("saver: ")
        assert "look whether that is the figure that was meant (there is dev.loss), whether the labels" in caplog.text


@pytest.mark.parametrize(("values", "told"), [([0.0, 0.0, 0.0, 0.0], 1), ([0.1, 0.0, 0.0, 0.0], 0)])
def test_a_run_that_goes_on_counts_the_tests_before(tmp_path, caplog, values, told):
    caplog.set_level("WARNING")  # Paddle, once it is imported, lets the rest through
    run(tmp_path, values, until=2)
    caplog.clear()
    run(tmp_path, values)
    assert len(caplog.messages) == told
    assert all("at each of 4 tests" in message for message in caplog.messages)


def test_a_checkpoint_that_does_not_tell_of_the_tests_before_says_nothing():
    best, state = Best("dev.f1"), State()
    best.load_state_dict({"best": 0.0, "best_step": 3, "seen": 3})
    state.step = 4
    state.report({"dev.f1": 0.0})
    assert best.fresh(state)
    assert (best.count, best.alike) == (1, False)
