"""Items that record or fail on demand; batches, examples and a network to try items on."""

import numpy as np
import pytest

from onion import Runner, RunnerItem
from onion.device import paddle, to_tensors
from onion.testing import Batches, Failing, PlannedError, Recorder, toy_examples, toy_network


class Swallow(RunnerItem):
    """Keep every PlannedError of a batch."""

    def __init__(self):
        self.errors = []

    def on_batch(self, state):
        try:
            yield
        except PlannedError as error:
            self.errors.append((state.batch, str(error)))


def test_a_recorder_writes_down_every_way_in_and_out_and_errors_which_it_passes_on():
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
    recorder = Recorder("mine")
    with pytest.raises(KeyboardInterrupt), Runner(recorder):
        raise KeyboardInterrupt
    assert recorder.trace == ["mine.initialize:in", "mine.initialize:error"]
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


def test_batches_gives_numbers_or_what_it_is_given_anew_every_pass():
    class Note(RunnerItem):
        def __init__(self):
            self.seen = []

        def on_batch(self, state):
            self.seen.append(state.batch)

    note = Note()
    Runner(Batches(3), note).run(passes=2)
    Runner(Batches("ab"), note).run(passes=2)
    assert note.seen == [0, 1, 2, 0, 1, 2, "a", "b", "a", "b"]


def test_toy_examples_are_always_the_same_for_a_seed():
    first, again, other = toy_examples(8, seed=1), toy_examples(8, seed=1), toy_examples(8, seed=2)
    assert len(first) == 8
    assert [example["x"].shape for example in first] == [(8,)] * 8
    assert {example[field].dtype.name for example in first for field in "xy"} == {"float32"}
    for field in "xy":
        assert all(np.array_equal(a[field], b[field]) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0]["x"], other[0]["x"])


def test_the_toy_network_is_the_same_for_a_seed_and_learns_its_toy_examples():
    first, again = toy_network(seed=3), toy_network(seed=3)
    assert np.array_equal(first.linear.weight.numpy(), again.linear.weight.numpy())

    examples = toy_examples(32)
    batch = to_tensors({field: np.stack([example[field] for example in examples]) for field in "xy"})
    assert first(batch).shape == [32, 1]
    optimizer = paddle().optimizer.SGD(0.1, parameters=first.parameters())
    losses = []
    for _ in range(50):
        loss = first.loss(first(batch), batch)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < 0.05 < losses[0]
