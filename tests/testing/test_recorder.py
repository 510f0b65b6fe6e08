"""Items that watch an onion, or fail in it on demand."""

import pytest

from onion import Runner, RunnerItem
from onion.testing import Batches, Failing, PlannedError, Recorder


class Swallow(RunnerItem):
    """Keep every PlannedError of a batch."""

    def __init__(self):
        self.errors = []

    def on_batch(self, state):
        try:
            yield
        except PlannedError as error:
            self.errors.append((state.batch, str(error)))


def test_a_recorder_writes_down_every_way_in_and_out():
    recorder = Recorder("mine")
    Runner(Batches(1), recorder).run(passes=1)
    assert recorder.trace == [
        "mine.initialize:in",
        "mine.on_pass:in",
        "mine.on_batch:in",
        "mine.on_batch:out",
        "mine.on_pass:out",
        "mine.initialize:out",
    ]


def test_a_recorder_writes_errors_down_and_passes_them_on():
    recorder = Recorder("mine")
    with pytest.raises(KeyboardInterrupt), Runner(recorder):
        raise KeyboardInterrupt
    assert recorder.trace == ["mine.initialize:in", "mine.initialize:error"]


def test_recorders_share_a_list_or_have_one_each():
    trace = []
    assert Recorder("a", trace).trace is Recorder("b", trace).trace is trace
    assert Recorder("a").trace is not Recorder("b").trace


@pytest.mark.parametrize("hook", ["initialize", "on_pass", "on_batch"])
@pytest.mark.parametrize("way", ["in", "out"])
def test_failing_fails_at_its_moment_and_says_which(hook, way):
    outside, inside = Recorder("outside"), Recorder("inside")
    with pytest.raises(PlannedError, match=f"^{hook} {way}$"):
        Runner(outside, Batches(1), Failing(hook, way), inside).run(passes=1)
    assert f"outside.{hook}:error" in outside.trace
    assert (f"inside.{hook}:in" in inside.trace) == (way == "out")


@pytest.mark.parametrize("way", ["in", "out"])
def test_failing_waits_for_its_step(way):
    swallow = Swallow()
    Runner(Batches(4), swallow, Failing("on_batch", way, step=2, times=1)).run(passes=1)
    assert swallow.errors == [(2, f"on_batch {way}")]


@pytest.mark.parametrize(("times", "failures"), [(0, 0), (2, 2), (None, 5)])
def test_failing_fails_so_often_and_works_then(times, failures):
    swallow = Swallow()
    Runner(Batches(5), swallow, Failing("on_batch", times=times)).run(passes=1)
    assert len(swallow.errors) == failures


@pytest.mark.parametrize("moment", [("on_epoch", "in"), ("on_batch", "under")])
def test_failing_at_a_moment_that_does_not_exist_is_refused(moment):
    with pytest.raises(ValueError, match="no such moment"):
        Failing(*moment)
