"""Progress: a bar for people, silence for files, and no reading of the cost between two refreshes."""

import fcntl
import io
import os
import pty
import struct
import termios
import threading

import paddle
import pytest

from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Progress, Runner, RunnerItem
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
        self.cost = Counted()

    def on_batch(self, state):
        state.cost = self.cost


def training(progress, *extra):
    network = toy_network()
    optimizer = paddle.optimizer.SGD(0.125, parameters=network.parameters())
    return Runner(
        progress,
        *extra,
        DataProvider(toy_examples(20), 4, prefetch=0),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


def test_on_a_terminal_it_shows_all_there_is_to_see():
    report = Observer(on_batch_end=lambda state: state.report({"accuracy": 0.75}))
    with Terminal() as terminal:
        state = training(Progress(seconds=0, file=terminal.file), report).run(passes=2)
    last = terminal.lines[-1]
    assert last.startswith("pass 2: 100%")
    assert "5/5" in last
    assert f"cost={float(state.cost):.4g}" in last
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
    assert "3 batches" in terminal.lines[-1]


def test_a_resumed_pass_is_counted_from_where_it_goes_on():
    def begin(state):
        state.step = state.batch_id = 3

    with Terminal() as terminal:
        provider = DataProvider(toy_examples(20), 4, prefetch=0)
        provider.load_state_dict({"batch": 3, "examples": 12})
        Runner(Observer(initialize=begin), Progress(seconds=0, file=terminal.file), provider).run(passes=1)
    assert any("4/5" in line for line in terminal.lines)
    assert "5/5" in terminal.lines[-1]


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


def test_the_cost_is_read_only_to_refresh():
    often, seldom = Costing(), Costing()
    with Terminal() as terminal:
        Runner(Progress(seconds=0, file=terminal.file), often, Batches(50)).run(passes=1)
        Runner(Progress(seconds=1000, file=terminal.file), seldom, Batches(50)).run(passes=1)
    assert often.cost.reads == 51
    assert seldom.cost.reads == 2  # the first batch and the end of the pass


@pytest.mark.parametrize("settings", [{}, {"quiet": True}])
def test_where_nobody_looks_nothing_is_shown_and_the_cost_is_not_read(settings):
    costing, file = Costing(), io.StringIO()
    Runner(Progress(seconds=0, file=file, **settings), costing, Batches(5)).run(passes=2)
    assert file.getvalue() == ""
    assert costing.cost.reads == 0


def test_on_a_terminal_it_can_be_told_to_be_quiet():
    with Terminal() as terminal:
        Runner(Progress(seconds=0, file=terminal.file, quiet=True), Batches(5)).run(passes=2)
    assert terminal.shown == ""


def test_a_file_can_be_written_if_told_to():
    file = io.StringIO()
    Runner(Progress(seconds=0, file=file, quiet=False), Batches(5)).run(passes=1)
    assert "5/5" in file.getvalue()


def test_standard_error_is_the_default_and_is_no_terminal_here(capsys):
    Runner(Progress(seconds=0), Batches(5)).run(passes=1)
    assert capsys.readouterr() == ("", "")
    Runner(Progress(seconds=0, quiet=False), Batches(5)).run(passes=1)
    assert "5/5" in capsys.readouterr().err
