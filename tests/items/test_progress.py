"""Progress: a bar on a terminal, lines in a log, and no reading of the loss between two refreshes."""

import fcntl
import io
import os
import pty
import re
import struct
import termios
import threading
from itertools import pairwise

import paddle
import pytest

from onion import (
    Accumulate,
    DataProvider,
    GradientMachine,
    Observer,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    Tester,
)
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network


class Terminal:
    """A pseudo-terminal of a size, (24, 200) by default; ``file`` is the side a program writes to."""

    def __init__(self, lines=24, columns=200):
        self.size = struct.pack("HHHH", lines, columns, 0, 0)

    def __enter__(self):
        self.reader, writer = pty.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, self.size)
        self.file = os.fdopen(writer, "w")
        self.parts = []
        self.thread = threading.Thread(target=self._read)
        self.thread.start()
        return self

    def _read(self):
        while True:
            try:
                part = os.read(self.reader, 4096)
            except OSError:  # the other side is closed
                return
            self.parts.append(part)

    def __exit__(self, *error):
        self.file.close()
        self.thread.join()
        os.close(self.reader)

    @property
    def shown(self):
        return b"".join(self.parts).decode()

    @property
    def lines(self):
        """What was to be seen one after the other."""
        return [line.strip() for line in self.shown.replace("\n", "\r").split("\r") if line.strip()]


class Counted:
    def __init__(self):
        self.reads = 0

    def __float__(self):
        self.reads += 1
        return 0.25


class Costing(RunnerItem):
    def __init__(self):
        self.loss = Counted()

    def on_batch(self, state):
        state.loss = self.loss


def training(progress, *extra, k=1):
    network = toy_network()
    optimizer = paddle.optimizer.SGD(0.125, parameters=network.parameters())
    return Runner(
        progress,
        *extra,
        DataProvider(toy_examples(20), 4, prefetch=0),
        ParameterUpdater(optimizer),
        Accumulate(k),
        GradientMachine(network),
    )


def test_on_a_terminal_it_shows_all_there_is_to_see():
    report = Observer(on_batch_end=lambda state: state.report({"accuracy": 0.75}))
    with Terminal() as terminal:
        state = training(Progress(seconds=0, file=terminal.file), report).run(passes=2)
    last = terminal.lines[-1]
    assert last.startswith("pass 2: 100%")
    assert "5/5" in last
    assert f"loss={float(state.loss):.4g}" in last
    assert "accuracy=0.75" in last
    assert "learning_rate=0.125" in last
    assert "examples/s" in last
    assert "examples=" not in last
    assert any(line.startswith("pass 1:  40%") and "2/5" in line for line in terminal.lines)


def test_a_terminal_that_tells_no_size_shows_the_bar_too():
    with Terminal(lines=0, columns=0) as terminal:
        training(Progress(seconds=0, file=terminal.file)).run(passes=1)
    assert terminal.lines[-1].startswith("pass 1: 100%")


def test_the_bar_is_finished_though_the_last_refresh_was_long_ago():
    report = Observer(on_pass_end=lambda state: state.report({"accuracy": 0.5}))
    with Terminal() as terminal:
        training(Progress(seconds=1000, file=terminal.file), report).run(passes=1)
    assert terminal.lines[-1].startswith("pass 1: 100%")
    assert "5/5" in terminal.lines[-1]
    assert "accuracy=0.5" in terminal.lines[-1]
    assert terminal.shown.endswith("\n")


def test_a_cut_pass_shows_how_far_it_came():
    with Terminal() as terminal:
        training(Progress(seconds=1000, file=terminal.file)).run(steps=3)
    assert "3/5" in terminal.lines[-1]


def test_a_pass_of_unknown_length_is_counted():
    with Terminal() as terminal:
        source = DataProvider(lambda: iter(toy_examples(12)), 4, prefetch=0)
        Runner(Progress(seconds=0, file=terminal.file), source).run(passes=1)
    assert "3 steps" in terminal.lines[-1]


def test_a_resumed_pass_is_counted_from_where_it_goes_on():
    def begin(state):
        state.step = state.batch_id = 3

    with Terminal() as terminal:
        provider = DataProvider(toy_examples(20), 4, prefetch=0)
        provider.load_state_dict({"batch": 3, "examples": 12})
        Runner(Observer(initialize=begin), Progress(seconds=0, file=terminal.file), provider).run(passes=1)
    assert any("4/5" in line for line in terminal.lines)
    assert "5/5" in terminal.lines[-1]


def test_a_test_that_shares_it_shows_nothing_and_leaves_the_bar():
    with Terminal() as terminal:
        progress = Progress(seconds=0, file=terminal.file)
        Runner(progress, Tester(Runner(progress, Batches(7)), every=2), Batches(4)).run(passes=1)
    assert not any("/7" in line for line in terminal.lines)
    assert "4/4" in terminal.lines[-1]


def test_after_an_error_the_line_is_ended():
    progress = None
    with Terminal() as terminal:
        progress = Progress(seconds=0, file=terminal.file)
        with pytest.raises(PlannedError):
            Runner(progress, Failing("on_batch", "in", 2), Batches(5)).run(passes=1)
        assert progress._bar is None
    assert "2/5" in terminal.lines[-1]
    assert terminal.shown.endswith("\n")


def test_an_empty_pass_does_no_harm():
    with Terminal() as terminal:
        Runner(Progress(seconds=0, file=terminal.file), Batches(0)).run(passes=1)
    assert terminal.lines[-1].startswith("pass 1")


def test_the_loss_is_read_only_to_refresh():
    often, seldom = Costing(), Costing()
    with Terminal() as terminal:
        Runner(Progress(seconds=0, file=terminal.file), often, Batches(50)).run(passes=1)
        Runner(Progress(seconds=1000, file=terminal.file), seldom, Batches(50)).run(passes=1)
    assert often.loss.reads == 51
    assert seldom.loss.reads == 2  # the first batch and the end of the pass


def test_on_a_terminal_it_can_be_told_to_be_quiet():
    with Terminal() as terminal:
        Runner(Progress(seconds=0, file=terminal.file, quiet=True), Batches(5)).run(passes=2)
    assert terminal.shown == ""


def test_a_bar_can_be_written_to_a_file_if_told_to():
    file = io.StringIO()
    Runner(Progress(seconds=0, file=file, lines=False), Batches(5)).run(passes=1)
    assert "5/5" in file.getvalue()


@pytest.mark.parametrize("k", [2, 4])
def test_the_bar_counts_the_steps_that_are_left_and_not_the_batches(k):
    with Terminal() as terminal:
        training(Progress(seconds=0, file=terminal.file), k=k).run(passes=1)
    shown = [line.split("| ")[1].split(" ")[0] for line in terminal.lines if "%" in line]
    assert {each.split("/")[1] for each in shown} == {str(-(-5 // k))}
    assert terminal.lines[-1].startswith("pass 1: 100%")


# -- lines -------------------------------------------------------------------------------------------------------------


class Clock:
    """A time that goes on by so many seconds a batch."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.seconds = 1000.0, seconds
        monkeypatch.setattr("onion.items.progress.perf_counter", lambda: self.now)

    def ring(self):
        def later(state):
            self.now += self.seconds

        return Observer(on_batch_begin=later)


def lines_of(clock, *rings, progress=None, **run):
    """Return the lines of a run of 5 batches a pass."""
    file = io.StringIO()
    training(Progress(file=file, **(progress or {})), clock.ring(), *rings).run(**run)
    assert file.getvalue().endswith("\n")
    return file.getvalue().splitlines()


def test_without_a_terminal_it_writes_lines_and_the_distance_between_them_grows(monkeypatch):
    lines = lines_of(Clock(monkeypatch, 1.0), passes=10)
    assert [int(re.match(r"step (\d+)/50, ", line)[1]) for line in lines] == [5, 15, 35, 50]


def test_a_line_is_complete_in_itself(monkeypatch):
    report = Observer(on_batch_end=lambda state: state.report({"accuracy": 0.75}))
    first, *_, last = lines_of(Clock(monkeypatch, 2.0), report, passes=2)
    assert re.fullmatch(
        r"step 3/10, pass 1/2: loss=\S+ accuracy=0.75 learning_rate=0.125, 0.5 steps/s, 2 examples/s, 0:00:14 left",
        first,
    )
    assert re.fullmatch(r"step 10/10, pass 2/2: .*, 0.5 steps/s, 2 examples/s, 0:00:20 in all", last)


def test_a_long_run_is_told_of_every_five_minutes(monkeypatch):
    lines = lines_of(Clock(monkeypatch, 60.0), passes=12)
    steps = [int(re.match(r"step (\d+)/60, ", line)[1]) for line in lines]
    assert {later - one for one, later in pairwise(steps[5:-1])} == {5}


def test_the_speed_is_that_since_the_last_line_and_the_time_left_by_the_whole(monkeypatch):
    clock = Clock(monkeypatch, 5.0)

    def slower(state):
        clock.seconds = 15.0 if state.step >= 1 else 5.0

    first, second, *_ = lines_of(clock, Observer(on_batch_begin=slower), passes=1)
    assert first.startswith("step 1/5")  # after 5 seconds
    assert first.endswith(" 0.2 steps/s, 0.8 examples/s, 0:00:20 left")
    assert second.startswith("step 3/5")  # after 5 + 5 + 15
    assert second.endswith(" 0.1 steps/s, 0.4 examples/s, 0:00:17 left")


def test_a_short_run_has_its_last_line_only_and_an_empty_one_none(monkeypatch):
    clock = Clock(monkeypatch, 0.1)
    assert len(lines_of(clock, passes=2)) == 1
    file = io.StringIO()
    Runner(Progress(file=file), Batches(0)).run(passes=1)
    assert file.getvalue() == ""


def test_a_resumed_run_tells_its_own_speed_and_not_that_of_the_steps_before(monkeypatch, tmp_path):
    clock = Clock(monkeypatch, 2.0)
    lines_of(clock, Saver(tmp_path), steps=22)
    first, *_, last = lines_of(clock, Saver(tmp_path), passes=6)
    assert first.startswith("step 25/30, pass 5/6: ")
    assert first.endswith(", 0.5 steps/s, 2 examples/s, 0:00:10 left")
    assert last.endswith(", 0.5 steps/s, 2 examples/s, 0:00:16 in all")


def test_a_run_that_was_stopped_says_why(monkeypatch):
    stop = Observer(on_batch_end=lambda state: state.stop("seen enough") if state.step == 3 else None)
    [line] = lines_of(Clock(monkeypatch, 0.1), stop, passes=4)
    assert line.startswith("step 3/20, pass 1/4: ")
    assert line.endswith(", stopped: seen enough")


def test_steps_that_are_asked_for_bound_the_total_and_data_without_a_length_have_none(monkeypatch):
    assert lines_of(Clock(monkeypatch, 6.0), steps=3)[0].startswith("step 1/3, pass 1: ")
    file = io.StringIO()
    source = DataProvider(lambda: iter(toy_examples(12)), 4, prefetch=0)
    Runner(Progress(file=file), Clock(monkeypatch, 6.0).ring(), source).run(passes=1)
    first, *_ = file.getvalue().splitlines()
    assert first.startswith("step 1, pass 1/1, ")
    assert "left" not in first


def test_lines_count_updates_where_several_batches_make_one(monkeypatch):
    file = io.StringIO()
    training(Progress(file=file), Clock(monkeypatch, 6.0).ring(), k=4).run(passes=3)
    assert [line.split(",")[0] for line in file.getvalue().splitlines()] == ["step 1/6", "step 3/6", "step 6/6"]


def test_a_run_within_a_run_has_no_last_line(monkeypatch):
    file = io.StringIO()
    test = Runner(Progress(file=file), Clock(monkeypatch, 0.1).ring(), Batches(5))
    Runner(Tester(test, every=1), Batches(3)).run(passes=1)
    assert file.getvalue() == ""


def test_each_line_is_written_at_once(monkeypatch):
    class Pieces(io.StringIO):
        def write(self, text):
            pieces.append(text)
            return len(text)

    pieces = []
    training(Progress(file=Pieces()), Clock(monkeypatch, 6.0).ring()).run(passes=1)
    assert len(pieces) >= 3
    assert all(piece.endswith("\n") and piece.count("\n") == 1 for piece in pieces)


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_reader_that_is_gone_ends_no_run(monkeypatch, error):
    class Gone(io.StringIO):
        def write(self, text):
            tries.append(text)
            raise error

    tries = []
    assert training(Progress(file=Gone()), Clock(monkeypatch, 6.0).ring()).run(passes=1).step == 5
    assert len(tries) == 1


def test_lines_can_be_had_on_a_terminal_too():
    with Terminal() as terminal:
        training(Progress(file=terminal.file, lines=True)).run(passes=1)
    assert [line.split(",")[0] for line in terminal.lines] == ["step 5/5"]


def test_the_loss_is_read_for_a_line_only(monkeypatch):
    costing = Costing()
    Runner(Progress(file=io.StringIO()), Clock(monkeypatch, 1.0).ring(), costing, Batches(20)).run(passes=1)
    assert costing.loss.reads == 3  # after 5 seconds, after 15, at the end


def test_quiet_writes_nothing_and_does_not_read_the_loss(monkeypatch):
    costing, file = Costing(), io.StringIO()
    Runner(Progress(file=file, quiet=True), Clock(monkeypatch, 9.0).ring(), costing, Batches(5)).run(passes=2)
    assert file.getvalue() == ""
    assert costing.loss.reads == 0


def test_a_process_without_standard_error_trains(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert Runner(Progress(), Batches(5)).run(passes=1).step == 5


def test_standard_error_is_the_default_and_standard_output_stays_clean(capsys):
    Runner(Progress(), Batches(5)).run(passes=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("step 5/5, pass 1/1, ")
    assert err.count("\n") == 1
