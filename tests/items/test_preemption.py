"""Preemption: the run ends before a machine that announces its end."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from onion import CompositionError, Observer, Preemption, Runner, Tester
from onion.testing import Batches
from tests.rings import Clock, at

END = 1_000_000.0  # Unix seconds
local = datetime.fromtimestamp
SAID = f"the machine ends at {local(END)}"


def run(announced, *rings, seconds=10, batches=20, passes=1, **options):
    """Run batches of so many seconds, from 100 seconds before the end; return the step and why it was stopped."""
    clock = Clock(END - 100)
    preemption = Preemption(announced, clock=clock, **options)
    state = Runner(*rings, preemption, clock.ring(seconds), Batches(batches)).run(passes=passes)
    return state.step, state.stopped


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (4, SAID)),
        ({"seconds_before": 61}, (4, SAID)),
        ({"seconds_before": 0}, (10, SAID)),
        ({"seconds_before": 30.0}, (7, SAID)),
        ({"seconds_before": 1000}, (1, SAID)),
        ({"batches": 3}, (3, None)),
    ],
    ids=["sixty by default", "61", "0", "30.0", "1000", "it has ended before"],
)
def test_the_run_ends_after_the_first_batch_that_is_too_near_the_end(options, expected):
    assert run(lambda: END, **options) == expected


@pytest.mark.parametrize(
    "told",
    [
        END,
        int(END),
        str(END),
        "1000000",
        " 1e6\n",
        local(END),
        pytest.param(local(END).isoformat(), id="ISO, of this machine's zone"),
        datetime.fromtimestamp(END, timezone.utc),
        datetime.fromtimestamp(END, timezone.utc).isoformat().replace("+00:00", "Z"),
        datetime.fromtimestamp(END, timezone(timedelta(hours=5, minutes=30))).isoformat(),
    ],
)
def test_a_time_may_be_written_in_many_ways(told, caplog):
    assert run(lambda: told) == (4, SAID)
    assert caplog.text == ""


SOON = (1, "the machine ends soon")


@pytest.mark.parametrize("told", ["soon", "10 o'clock", "nan", "inf", "1e30", "-1e30", float("nan"), [1]])
def test_what_is_no_time_is_soon_and_said_once(told, caplog):
    runner = Runner(Preemption(lambda: told, clock=Clock()), Batches(5))
    for _ in range(2):
        state = runner.run(passes=1)
        assert (state.step, state.stopped) == SOON
    assert caplog.messages == [f"preemption: {told!r} is not a time; the end is assumed to be near"]


@pytest.mark.parametrize(
    ("content", "expected"), [("", (4, "the machine ends soon")), (f"{END}\n", (40, SAID))], ids=["empty", "a time"]
)
def test_a_file_that_appears_announces(content, expected, tmp_path, caplog):
    appear = at(3, lambda: (tmp_path / "end").write_text(content))
    assert run(tmp_path / "end", appear, seconds=1, batches=90) == expected
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("name", "expected"), [("end", SOON), ("no text", SOON), ("none", (20, None)), ("end/none", (20, None))]
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_that_is_there_announces(name, expected, kind, tmp_path):
    (tmp_path / "end").touch()
    (tmp_path / "no text").write_bytes(b"\xff\xfe\x00" * 1000)
    assert run(kind(tmp_path / name)) == expected


def test_a_file_that_cannot_be_read_is_there_all_the_same(tmp_path, caplog):
    assert run(tmp_path) == SOON  # a folder
    assert "'(Is a directory)' is not a time" in caplog.text


@pytest.mark.parametrize(("value", "expected"), [(f"{END:.0f}", (4, SAID)), ("", (20, None)), (None, (20, None))])
def test_an_environment_variable_announces(value, expected, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    if value is not None:
        monkeypatch.setenv("SLURM_JOB_END_TIME", value)
    assert run("$SLURM_JOB_END_TIME") == expected


def test_it_looks_once_a_second_at_most():
    looks, clock = [], Clock(0)
    preemption = Preemption(lambda: looks.append(clock.now), clock=clock)
    Runner(preemption, clock.ring(0.25), Batches(12)).run(passes=1)
    assert looks == [0.25, 1.25, 2.25]


def test_it_looks_on_though_the_clock_is_set_back():
    clock, told = Clock(END - 100), iter([None, END - 3600])
    turned = Observer(on_batch_end=lambda state: setattr(clock, "now", END - 3650))
    runner = Runner(turned, Preemption(lambda: next(told), clock=clock), clock.ring(10), Batches(9))
    assert runner.run(passes=1).step == 2


def test_an_announcement_may_be_taken_back():
    told = iter([END, END, None, *[END + 100] * 20])
    assert run(lambda: next(told)) == (14, f"the machine ends at {local(END + 100)}")


def test_a_test_inside_is_finished():
    clock, tested = Clock(END - 100), []
    preemption, tick = Preemption(lambda: END, clock=clock), clock.ring(10)
    test = Runner(preemption, Observer(on_batch_end=lambda state: tested.append(state.step)), tick, Batches(8))
    state = Runner(Tester(test, every=1), preemption, clock.ring(10), Batches(5)).run(passes=1)
    assert (tested, state.step, state.stopped) == ([*range(1, 9)] * 2, 2, SAID)


def test_it_reads_the_clock_of_the_machine_by_default():
    assert Runner(Preemption(lambda: 1.0), Batches(3)).run(passes=1).step == 1
    assert Runner(Preemption(lambda: 4e9, seconds_before=0), Batches(3)).run(passes=1).step == 3


@pytest.mark.parametrize("announced", [None, 5, "", lambda: (yield)])
def test_what_announces_nothing_is_refused(announced):
    with pytest.raises(CompositionError, match="must be a path, '\\$NAME' of an environment variable"):
        Preemption(announced)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "60", None, True])
def test_what_is_no_time_before_the_end_is_refused(seconds):
    with pytest.raises(CompositionError, match="must be a number >= 0"):
        Preemption("end", seconds)
