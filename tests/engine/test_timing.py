"""The clock between the rings: it changes nothing, and its figures add up."""

import json
from collections import Counter
from time import perf_counter_ns

import pytest

from onion import Observer, OnionError, Runner, RunnerItem
from onion.testing import Batches, Failing, PlannedError, Recorder


class Yields(RunnerItem):
    """Run the inside so many times."""

    def __init__(self, times):
        self.times = times

    def on_batch(self, state):
        for _ in range(self.times):
            yield


class Waits(RunnerItem):
    """Take some time, measured by the clock itself, on one way."""

    def __init__(self, name, way, nanoseconds=2_000_000):
        self.name, self.way, self.nanoseconds = name, way, nanoseconds

    def on_batch(self, state):
        if self.way == "in":
            self.wait()
        yield
        if self.way == "out":
            self.wait()

    def wait(self):
        end = perf_counter_ns() + self.nanoseconds
        while perf_counter_ns() < end:
            pass


def timed(*items, passes=1):
    """Run a timed onion; return its costs by item and hook, and the runner."""
    runner = Runner(*items).timed()
    runner.run(passes=passes)
    return runner.timing().costs, runner


def recorded(compose, timed):
    """Run an onion timed or not; return its trace, the error and the runner."""
    trace, error = [], None
    runner = compose(trace)
    runner = runner.timed() if timed else runner
    try:
        runner.run(passes=2)
    except PlannedError as caught:
        error = str(caught)
    return trace, error, runner


ONIONS = {
    "flat": lambda trace: Runner(Recorder("a", trace), Batches(3), Recorder("b", trace)),
    "nested": lambda trace: Runner(
        Batches(2), Runner(Recorder("a", trace), Runner(Recorder("b", trace))), Runner(Recorder("c", trace))
    ),
    "doubled": lambda trace: Runner(Batches(2), Yields(2), Recorder("a", trace), Yields(3), Recorder("b", trace)),
    "skipped": lambda trace: Runner(Batches(2), Recorder("a", trace), Yields(0), Recorder("b", trace)),
    "no batch rings": lambda trace: Runner(Batches(2)),
    "nothing": lambda trace: Runner(Batches(0)),
    **{
        f"{hook} {way} fails": lambda trace, hook=hook, way=way: Runner(
            Recorder("a", trace), Batches(2), Runner(Recorder("b", trace), Failing(hook, way)), Recorder("c", trace)
        )
        for hook in ("initialize", "on_pass", "on_batch")
        for way in ("in", "out")
    },
}


@pytest.mark.parametrize("compose", ONIONS.values(), ids=ONIONS)
def test_a_timed_run_does_what_an_untimed_one_does_and_costs_no_more_than_it_took(compose):
    before = perf_counter_ns()
    *seen, runner = recorded(compose, timed=True)
    took = perf_counter_ns() - before
    assert seen == list(recorded(compose, timed=False)[:2])
    costs = runner.timing().costs.values()
    assert all(cost.way_in >= 0 and cost.way_out >= 0 for cost in costs)
    assert sum(cost.way_in + cost.way_out for cost in costs) <= took


@pytest.mark.parametrize("compose", ONIONS.values(), ids=ONIONS)
def test_the_chrome_trace_is_json_with_durations_that_add_up_to_the_costs(compose, tmp_path):
    _, _, runner = recorded(compose, timed=True)
    runner.timing().chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    ends = [event["ts"] + event["dur"] for event in events]
    assert all(end <= event["ts"] + 1e-6 for end, event in zip(ends, events[1:], strict=False)), "one after the other"
    told = Counter()
    for event in events:
        told[event["name"].rpartition(" way ")[0], event["cat"]] += event["dur"]
    for slot, cost in runner.timing().costs.items():
        assert told[slot] == pytest.approx((cost.way_in + cost.way_out) / 1e3)


def test_time_is_charged_to_the_ring_and_the_way_that_took_it():
    waiting = Waits("slow-in", "in"), Waits("slow-out", "out")
    costs, _ = timed(Recorder("quick"), Batches(3), *waiting, Recorder("b"))
    assert costs["slow-in", "on_batch"].way_in >= 3 * 2_000_000
    assert costs["slow-out", "on_batch"].way_out >= 3 * 2_000_000


def test_the_time_of_the_data_is_the_next_batchs():
    def give():
        for number in range(3):
            Waits("", "").wait()
            yield number

    costs, _ = timed(Observer(on_pass_begin=lambda state: setattr(state, "batches", give())), Recorder("a"))
    assert costs["next batch", "on_batch"].way_in >= 3 * 2_000_000


@pytest.mark.parametrize(("times", "inside"), [(0, 0), (1, 3), (2, 6)])
def test_calls_count_how_often_a_ring_was_entered(times, inside):
    costs, _ = timed(Recorder("a"), Batches(3), Yields(times), Recorder("b"))
    calls = {slot: cost.calls for slot, cost in costs.items()}
    assert calls["a", "initialize"] == calls["a", "on_pass"] == 1
    assert calls["next batch", "on_batch"] == calls["a", "on_batch"] == calls["yields", "on_batch"] == 3
    assert calls.get(("b", "on_batch"), 0) == inside


def test_each_ring_of_each_runner_has_a_line_of_its_own():
    """Also nested runners of one default name, and items on whose instances hooks were put."""
    costs, _ = timed(
        Observer(on_batch_end=lambda state: None),
        Observer(on_batch_begin=lambda state: None, finalize=lambda state: None),
        Batches(2),
        Runner(Yields(1)),
        Runner(Yields(1)),
    )
    in_batches = ["next batch", "observer", "observer-2", "runner", "yields", "runner-2", "yields-2"]
    assert [slot for slot in costs if "center" not in slot] == [
        ("the loop", "initialize"),
        ("observer-2", "initialize"),
        ("the loop", "on_pass"),
        ("batches", "on_pass"),
        *((name, "on_batch") for name in in_batches),
    ]
    assert {cost.calls for (_, hook), cost in costs.items() if hook == "on_batch"} == {2}


def test_the_table_has_a_line_for_each_hook_of_each_ring():
    costs, runner = timed(Recorder("a"), Batches(2))
    lines = str(runner.timing()).splitlines()
    assert lines[0].split() == ["ring", "hook", "calls", "way", "in", "us", "way", "out", "us", "total", "ms"]
    assert len(lines) == 1 + len(costs)
    assert len({len(line) for line in lines}) == 1
    told = next(line.split() for line in lines if line.startswith("a") and "on_batch" in line)
    assert told[:3] == ["a", "on_batch", "2"]
    calls, way_in, way_out, total = map(float, told[2:])
    assert way_in > 0 < way_out
    assert total == pytest.approx(calls * (way_in + way_out) / 1e3, abs=0.02)


def test_runs_add_up():
    costs, runner = timed(Recorder("a"), Batches(2))
    for _ in range(2):
        runner.run(passes=1)
    assert costs["a", "on_batch"].calls == 6


def test_the_time_between_two_runs_is_nobodys():
    runner = Runner(Recorder("a"), Batches(1)).timed()
    wait, took = Waits("", ""), 0

    def clocked(function):
        nonlocal took
        wait.wait()
        before = perf_counter_ns()
        function()
        took += perf_counter_ns() - before

    clocked(lambda: runner.run(passes=1))
    clocked(lambda: runner.run(passes=1))
    clocked(runner.__enter__)
    clocked(runner.run_pass)
    assert sum(cost.way_in + cost.way_out for cost in runner.timing().costs.values()) <= took


def test_timed_is_a_new_runner_of_the_same_items_and_the_old_one_stays_untimed():
    runner = Runner(Recorder("a"), Batches(1), Runner(Recorder("b")))
    timed = runner.timed()
    assert timed.items[0] is runner.items[0]
    assert timed["b"] is runner["b"]
    assert str(timed) == str(runner)
    with pytest.raises(OnionError, match=r"timing is off; run runner\.timed\(\) instead"):
        runner.timing()


def test_a_runner_derived_from_a_timed_one_is_timed():
    runner = Runner(Recorder("a"), Batches(1), Recorder("b")).timed().without("a")
    runner.run(passes=1)
    assert runner.timing().costs["b", "on_batch"].calls == 1


def test_the_trace_holds_the_latest_events_only(monkeypatch, tmp_path):
    monkeypatch.setattr("onion.engine.timing.KEPT", 10)
    costs, runner = timed(Recorder("a"), Batches(50))
    runner.timing().chrome_trace(str(tmp_path / "trace.json"))
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == 10
    assert costs["a", "on_batch"].calls == 50
