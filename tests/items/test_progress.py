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

import pytest

from onion import (
    Accumulate,
    DataProvider,
    Observer,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    TaskData,
    TaskSampler,
    Tester,
)
from onion.multitask.stages import Stages
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.items.learning import examples, learning
from tests.rings import Clock

END = b"\0"  # the last byte that is written to a terminal


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
        while not self.parts or not self.parts[-1].endswith(END):
            self.parts.append(os.read(self.reader, 4096))

    def __exit__(self, *error):
        self.file.write(END.decode())
        self.file.flush()
        self.thread.join()  # before the writer is closed: a terminal may drop what is unread when its writer goes
        self.file.close()
        os.close(self.reader)

    @property
    def shown(self):
        return b"".join(self.parts).removesuffix(END).decode()

    @property
    def lines(self):
        """What was to be seen one after the other."""
        return [line.strip() for line in self.shown.replace("\n", "\r").split("\r") if line.strip()]


def bar(compose, lines=24, columns=200, seconds=0, **limits):
    """Run what is composed around a bar on a terminal; return the terminal, and the state."""
    with Terminal(lines, columns) as terminal:
        terminal.state = compose(Progress(seconds=seconds, file=terminal.file)).run(**(limits or {"passes": 1}))
    return terminal


class Costing(RunnerItem):
    """A loss that counts how often it is read."""

    reads = 0

    def on_batch(self, state):
        state.loss = self

    def __float__(self):
        self.reads += 1
        return 0.25


def training(progress, *extra, k=1):
    updater, machine = learning(toy_network(), rate=0.125)
    return Runner(progress, *extra, examples(20), updater, Accumulate(k), machine)


def stream():
    return DataProvider(lambda: iter(toy_examples(12)), 4, prefetch=0)


def test_on_a_terminal_it_shows_all_there_is_to_see():
    report = Observer(on_batch_end=lambda state: state.report({"accuracy": 0.75}))
    terminal = bar(lambda progress: training(progress, report), passes=2)
    *_, last = terminal.lines
    assert last.startswith("pass 2: 100%")
    loss = f"loss={float(terminal.state.loss):.4g}"
    assert all(part in last for part in ("5/5", loss, "accuracy=0.75", "learning_rate=0.125", "examples/s"))
    assert "examples=" not in last
    assert any(line.startswith("pass 1:  40%") and "2/5" in line for line in terminal.lines)


@pytest.mark.parametrize(
    ("compose", "settings", "shown"),
    [
        (training, {"lines": 0, "columns": 0}, r"pass 1: 100%.*"),  # a terminal that tells no size
        (training, {"seconds": 1000, "steps": 3}, r".* 3/5 .*"),
        (lambda progress: Runner(progress, stream()), {}, r".*\b3 steps.*"),
        (lambda progress: Runner(progress, Batches(0)), {}, r"pass 1.*"),
    ],
    ids=["no size", "a cut pass", "unknown length", "no batch"],
)
def test_the_bar_shows_how_far_a_pass_came(compose, settings, shown):
    assert re.fullmatch(shown, bar(compose, **settings).lines[-1])


def test_the_bar_is_finished_though_the_last_refresh_was_long_ago():
    report = Observer(on_pass_end=lambda state: state.report({"accuracy": 0.5}))
    terminal = bar(lambda progress: training(progress, report), seconds=1000)
    assert re.fullmatch(r"pass 1: 100%.*\b5/5\b.*\baccuracy=0\.5\b.*", terminal.lines[-1])
    assert terminal.shown.endswith("\n")


def test_a_resumed_pass_is_counted_from_where_it_goes_on():
    def begin(state):
        state.step = state.batch_id = 3

    provider = examples(20)
    provider.load_state_dict({"batch": 3, "examples": 12})
    terminal = bar(lambda progress: Runner(Observer(initialize=begin), progress, provider))
    assert any("4/5" in line for line in terminal.lines)
    assert "5/5" in terminal.lines[-1]


def test_below_the_bar_it_says_why_the_run_was_stopped():
    stop = Observer(on_batch_end=lambda state: state.stop("seen enough") if state.step == 3 else None)
    terminal = bar(lambda progress: training(progress, stop), passes=2)
    assert terminal.lines[-1] == "stopped after step 3: seen enough"
    assert "stopped" not in bar(training, steps=3).shown


def test_a_test_that_shares_it_shows_nothing_and_leaves_the_bar():
    terminal = bar(lambda progress: Runner(progress, Tester(Runner(progress, Batches(7)), every=2), Batches(4)))
    assert not any("/7" in line for line in terminal.lines)
    assert "4/4" in terminal.lines[-1]


def test_after_an_error_the_line_is_ended():
    with Terminal() as terminal:
        progress = Progress(seconds=0, file=terminal.file)
        with pytest.raises(PlannedError):
            Runner(progress, Failing("on_batch", "in", 2), Batches(5)).run(passes=1)
        assert progress._bar is None
    assert "2/5" in terminal.lines[-1]
    assert terminal.shown.endswith("\n")


@pytest.mark.parametrize(("seconds", "reads"), [(0, 51), (1000, 2)])  # the first batch and the end of the pass
def test_the_loss_is_read_only_to_refresh(seconds, reads):
    costing = Costing()
    bar(lambda progress: Runner(progress, costing, Batches(50)), seconds=seconds)
    assert costing.reads == reads


@pytest.mark.parametrize("lines", [True, False])
def test_quiet_writes_nothing_and_does_not_read_the_loss(lines, clock):
    costing = Costing()
    with Terminal() as terminal:
        progress = Progress(seconds=0, file=terminal.file, quiet=True, lines=lines)
        Runner(progress, clock.ring(9.0), costing, Batches(5)).run(passes=2)
    assert terminal.shown == ""
    assert costing.reads == 0


def test_a_bar_can_be_written_to_a_file_if_told_to():
    file = io.StringIO()
    Runner(Progress(seconds=0, file=file, lines=False), Batches(5)).run(passes=1)
    assert "5/5" in file.getvalue()


@pytest.mark.parametrize("k", [2, 4])
def test_the_bar_counts_the_steps_that_are_left_and_not_the_batches(k):
    terminal = bar(lambda progress: training(progress, k=k))
    shown = [line.split("| ")[1].split(" ")[0] for line in terminal.lines if "%" in line]
    assert {each.split("/")[1] for each in shown} == {str(-(-5 // k))}
    assert terminal.lines[-1].startswith("pass 1: 100%")


# -- lines -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("onion.items.progress.perf_counter", clock)
    return clock


def written(compose, **limits):
    """Run what is composed around lines to a file; return the lines."""
    file = io.StringIO()
    compose(Progress(file=file)).run(**(limits or {"passes": 1}))
    assert file.getvalue()[-1:] in ("", "\n")
    return file.getvalue().splitlines()


def lines_of(ring, *rings, k=1, **limits):
    """Return the lines of a run of 5 batches a pass."""
    return written(lambda progress: training(progress, ring, *rings, k=k), **limits)


def test_without_a_terminal_it_writes_lines_and_the_distance_between_them_grows(clock):
    lines = lines_of(clock.ring(1.0), passes=10)
    assert [int(re.match(r"step (\d+)/50, ", line)[1]) for line in lines] == [5, 15, 35, 50]


def test_a_line_is_complete_in_itself(clock):
    report = Observer(on_batch_end=lambda state: state.report({"accuracy": 0.75}))
    first, *_, last = lines_of(clock.ring(2.0), report, passes=2)
    assert re.fullmatch(
        r"step 3/10, pass 1/2: loss=\S+ accuracy=0.75 learning_rate=0.125, 0.5 steps/s, 2 examples/s, 0:00:14 left",
        first,
    )
    assert re.fullmatch(r"step 10/10, pass 2/2: .*, 0.5 steps/s, 2 examples/s, 0:00:20 in all", last)


def test_a_long_run_is_told_of_every_five_minutes(clock):
    lines = lines_of(clock.ring(60.0), passes=12)
    steps = [int(re.match(r"step (\d+)/60, ", line)[1]) for line in lines]
    assert {later - one for one, later in pairwise(steps[5:-1])} == {5}


def test_the_speed_is_that_since_the_last_line_and_the_time_left_by_the_whole(clock):
    def slower(state):
        clock.now += 10.0 if state.step >= 2 else 0.0

    first, second, *_ = lines_of(clock.ring(5.0), Observer(on_batch_begin=slower), passes=1)
    assert first.startswith("step 1/5")  # after 5 seconds
    assert first.endswith(" 0.2 steps/s, 0.8 examples/s, 0:00:20 left")
    assert second.startswith("step 3/5")  # after 5 + 5 + 15
    assert second.endswith(" 0.1 steps/s, 0.4 examples/s, 0:00:17 left")


def test_a_short_run_has_its_last_line_only_and_an_empty_or_inner_one_none(clock):
    assert len(lines_of(clock.ring(0.1), passes=2)) == 1
    assert written(lambda progress: Runner(progress, Batches(0))) == []
    test = written(lambda progress: Runner(Tester(Runner(progress, clock.ring(0.1), Batches(5)), every=1), Batches(3)))
    assert test == []


def test_a_resumed_run_tells_its_own_speed_and_not_that_of_the_steps_before(clock, tmp_path):
    lines_of(clock.ring(2.0), Saver(tmp_path), steps=22)
    first, *_, last = lines_of(clock.ring(2.0), Saver(tmp_path), passes=6)
    assert first.startswith("step 25/30, pass 5/6: ")
    assert first.endswith(", 0.5 steps/s, 2 examples/s, 0:00:10 left")
    assert last.endswith(", 0.5 steps/s, 2 examples/s, 0:00:16 in all")


def test_a_run_that_was_stopped_says_why(clock):
    stop = Observer(on_batch_end=lambda state: state.stop("seen enough") if state.step == 3 else None)
    [line] = lines_of(clock.ring(0.1), stop, passes=4)
    assert line.startswith("step 3/20, pass 1/4: ")
    assert line.endswith(", stopped: seen enough")


def test_steps_that_are_asked_for_bound_the_total_and_data_without_a_length_have_none(clock):
    assert lines_of(clock.ring(6.0), steps=3)[0].startswith("step 1/3, pass 1: ")
    first, *_ = written(lambda progress: Runner(progress, clock.ring(6.0), stream()))
    assert first.startswith("step 1, pass 1/1, ")
    assert "left" not in first


def test_lines_count_updates_where_several_batches_make_one(clock):
    lines = lines_of(clock.ring(6.0), k=4, passes=3)
    assert [line.split(",")[0] for line in lines] == ["step 1/6", "step 3/6", "step 6/6"]


def test_stages_that_differ_are_counted_with_what_each_has(clock):
    def staged(progress):
        tasks = {name: TaskData(DataProvider(toy_examples(20), 4, prefetch=0)) for name in "ab"}
        sampler = TaskSampler(tasks, Stages({"a": 4, "b": 5}, keep=2))
        return Runner(progress, clock.ring(6.0), sampler, *learning(toy_network(), rate=0.125))

    lines = written(staged, passes=2)
    assert lines[0].startswith("step 1/9, pass 1/2")
    assert written(staged, passes=5)[0].startswith("step 1/9, pass 1/5")
    assert lines[-1].endswith("stopped: all stages are done")


class Pieces(io.StringIO):
    """A file that notes what is written, and may refuse it."""

    def __init__(self, error=None):
        super().__init__()
        self.pieces, self.error = [], error

    def write(self, text):
        self.pieces.append(text)
        if self.error:
            raise self.error
        return len(text)


def test_each_line_is_written_at_once(clock):
    file = Pieces()
    training(Progress(file=file), clock.ring(6.0)).run(passes=1)
    assert len(file.pieces) >= 3
    assert all(piece.endswith("\n") and piece.count("\n") == 1 for piece in file.pieces)


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_reader_that_is_gone_ends_no_run(clock, error):
    file = Pieces(error)
    assert training(Progress(file=file), clock.ring(6.0)).run(passes=1).step == 5
    assert len(file.pieces) == 1


def test_lines_can_be_had_on_a_terminal_too():
    with Terminal() as terminal:
        training(Progress(file=terminal.file, lines=True)).run(passes=1)
    assert [line.split(",")[0] for line in terminal.lines] == ["step 5/5"]


def test_the_loss_is_read_for_a_line_only(clock):
    costing = Costing()
    written(lambda progress: Runner(progress, clock.ring(1.0), costing, Batches(20)))
    assert costing.reads == 3  # after 5 seconds, after 15, at the end


def test_a_process_without_standard_error_trains(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert Runner(Progress(), Batches(5)).run(passes=1).step == 5


def test_standard_error_is_the_default_and_standard_output_stays_clean(capsys):
    Runner(Progress(), Batches(5)).run(passes=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("step 5/5, pass 1/1, ")
    assert err.count("\n") == 1
