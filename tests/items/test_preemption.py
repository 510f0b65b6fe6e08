"""Preemption: the run ends before a machine that announces its end."""

from datetime import datetime, timedelta, timezone

import pytest

from onion import CompositionError, Observer, Preemption, Runner, Saver, Tester
from onion.testing import Batches

END = 1_000_000.0  # Unix seconds


class Clock:
    """A clock that every batch moves on."""

    def __init__(self, now=END - 100, batch=10):
        self.now, self.batch = now, batch

    def __call__(self):
        return self.now

    @property
    def ring(self):
        def pass_by(state):
            self.now += self.batch

        return Observer(on_batch_begin=pass_by)


def steps(announced, clock=None, batches=20, **options):
    clock = clock or Clock()
    runner = Runner(Preemption(announced, clock=clock, **options), clock.ring, Batches(batches))
    state = runner.run(passes=1)
    return state.step, state.stopped


def local(seconds):
    return datetime.fromtimestamp(seconds)


SAID = f"the machine ends at {local(END)}"


@pytest.mark.parametrize(("seconds_before", "expected"), [(60, 4), (61, 4), (0, 10), (30.0, 7), (1000, 1)])
def test_the_run_ends_after_the_first_batch_that_is_too_near_the_end(seconds_before, expected):
    assert steps(lambda: END, seconds_before=seconds_before) == (expected, SAID)


def test_sixty_seconds_are_the_default():
    assert steps(lambda: END) == (4, SAID)


def test_a_run_that_is_through_before_is_not_stopped():
    assert steps(lambda: END, batches=3) == (3, None)


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
    assert steps(lambda: told) == (4, SAID)
    assert caplog.text == ""


@pytest.mark.parametrize("told", ["soon", "10 o'clock", "nan", "inf", "1e30", "-1e30", float("nan"), [1]])
def test_what_is_no_time_is_soon_and_said_once(told, caplog):
    clock = Clock()
    runner = Runner(Preemption(lambda: told, clock=clock), clock.ring, Batches(5))
    for _ in range(2):
        state = runner.run(passes=1)
        assert (state.step, state.stopped) == (1, "the machine ends soon")
    assert [record.getMessage() for record in caplog.records] == [
        f"preemption: {told!r} is not a time; the end is assumed to be near"
    ]


def test_a_file_that_appears_announces(tmp_path, caplog):
    def runner(content):
        clock = Clock(batch=1)
        appear = Observer(on_batch_begin=lambda state: state.step == 2 and (tmp_path / "end").write_text(content))
        return Runner(Preemption(tmp_path / "end", clock=clock), clock.ring, appear, Batches(90))

    state = runner("").run(passes=1)
    assert (state.step, state.stopped) == (3, "the machine ends soon")
    (tmp_path / "end").unlink()
    state = runner(f"{END}\n").run(passes=1)
    assert (state.step, state.stopped) == (40, SAID)
    assert caplog.text == ""


def test_a_file_may_be_named_by_a_text(tmp_path):
    (tmp_path / "end").touch()
    assert steps(str(tmp_path / "end")) == (1, "the machine ends soon")


@pytest.mark.parametrize("name", ["none", "file/none"])
def test_a_file_that_is_not_there_announces_nothing(name, tmp_path):
    (tmp_path / "file").touch()
    assert steps(tmp_path / name) == (20, None)


def test_a_file_that_cannot_be_read_is_there_all_the_same(tmp_path, caplog):
    assert steps(tmp_path) == (1, "the machine ends soon")  # a folder
    assert "'(Is a directory)' is not a time" in caplog.text


def test_bytes_that_are_no_text_are_soon(tmp_path):
    (tmp_path / "end").write_bytes(b"\xff\xfe\x00" * 1000)
    assert steps(tmp_path / "end") == (1, "the machine ends soon")


@pytest.mark.parametrize(("value", "expected"), [(f"{END:.0f}", (4, SAID)), ("", (20, None)), (None, (20, None))])
def test_an_environment_variable_announces(value, expected, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    if value is not None:
        monkeypatch.setenv("SLURM_JOB_END_TIME", value)
    assert steps("$SLURM_JOB_END_TIME") == expected


def test_it_looks_once_a_second_at_most():
    looks = []
    clock = Clock(batch=0.25)
    steps(lambda: looks.append(clock.now), clock, batches=12)
    assert looks == [END - 100 + 0.25, END - 100 + 1.25, END - 100 + 2.25]


def test_it_looks_on_though_the_clock_is_set_back():
    clock = Clock()
    told = iter([None, END - 3600])
    turned = Observer(on_batch_end=lambda state: setattr(clock, "now", END - 3650))
    state = Runner(turned, Preemption(lambda: next(told), clock=clock), clock.ring, Batches(9)).run(passes=1)
    assert state.step == 2


def test_an_announcement_may_be_taken_back():
    clock = Clock()
    told = iter([END, END, None, *[END + 100] * 20])
    assert steps(lambda: next(told), clock) == (14, f"the machine ends at {local(END + 100)}")


def test_a_test_inside_is_finished():
    clock, tested = Clock(), []
    preemption = Preemption(lambda: END, clock=clock)
    test = Runner(preemption, Observer(on_batch_end=lambda state: tested.append(state.step)), clock.ring, Batches(8))
    state = Runner(Tester(test, every=1), preemption, clock.ring, Batches(5)).run(passes=1)
    assert (tested, state.step, state.stopped) == ([*range(1, 9)] * 2, 2, SAID)


def test_a_saver_saves_and_the_next_run_goes_on(tmp_path):
    clock = Clock()
    runner = Runner(Saver(tmp_path), Preemption(lambda: END, clock=clock), clock.ring, Batches(10))
    assert runner.run(passes=1).step == 4
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("step-")] == ["step-00000004"]


def test_it_is_drawn_with_what_announces():
    runner = Runner(Preemption("$SLURM_JOB_END_TIME", 120), Batches(1))
    assert "Preemption(announced='$SLURM_JOB_END_TIME', seconds_before=120)" in str(runner)


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
