"""CheckpointWriter: which checkpoints there are, what is told of them, whose the folder is, what a full disk does."""

import errno
import os
import threading
from unittest.mock import patch

import pytest

from onion import CheckpointError
from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import Files, through
from onion.checkpointing.checkpoint import Checkpoint
from onion.checkpointing.writer import Background, CheckpointWriter, quietly


def writer(folder, keep=2, background=False, on_error="raise"):
    return CheckpointWriter(folder, keep, background, on_error)


def taken(step, best_step=None):
    return Checkpoint(step, {"best_step": best_step}, {})


class Full(Files):
    def write(self, file, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Held(Files):
    """A disk whose renaming lasts until it is let go."""

    def __init__(self):
        self.go = threading.Event()

    def rename(self, source, target):
        self.go.wait()
        super().rename(source, target)


@pytest.mark.parametrize("keep", [1, 3])
def test_the_newest_few_are_kept_and_the_best(keep, tmp_path):
    writes = writer(tmp_path, keep)
    for step in range(1, 7):
        writes.write(taken(step, best_step=min(2, step)))
    assert checkpoint.steps_in(tmp_path) == [2, *range(7 - keep, 7)]
    assert writes.newest == 6


def test_later_ones_that_were_passed_over_do_not_count_and_stay(tmp_path):
    for step in (1, 2, 3, 9):
        checkpoint.write(tmp_path, taken(step))
    writes = writer(tmp_path)
    writes.go_on_from(taken(3))
    assert (checkpoint.steps_in(tmp_path), writes.newest, writes.news()) == ([2, 3, 9], 3, [])
    writes.write(taken(4))
    assert (checkpoint.steps_in(tmp_path), writes.newest, writes.news()) == ([3, 4, 9], 4, [3, 4])


@pytest.mark.parametrize("background", [False, True])
def test_what_may_be_gone_on_from_is_told_once(background, tmp_path):
    writes = writer(tmp_path, background=background)
    assert writes.news() == []
    for step, told in ((2, [2]), (4, [2, 4]), (6, [4, 6])):
        writes.write(taken(step, best_step=2))
        writes.wait()
        assert (writes.news(), writes.news()) == (told, [])


def test_in_the_background_there_is_no_news_until_it_is_written(tmp_path):
    disk, writes = Held(), writer(tmp_path, background=True)
    with through(disk):
        writes.write(taken(5))
        writes.look()
        assert (writes.newest, writes.news(), checkpoint.steps_in(tmp_path)) == (5, [], [])
        disk.go.set()
        writes.wait()
    assert (writes.news(), checkpoint.steps_in(tmp_path)) == ([5], [5])


@pytest.mark.parametrize("background", [False, True])
def test_a_full_disk_is_an_error_or_logged_and_then_nothing_is_the_newest(background, tmp_path, caplog):
    strict, warning = writer(tmp_path, 2, background), writer(tmp_path, 2, background, on_error="warn")
    with through(Full()):
        with pytest.raises(CheckpointError, match="No space left"):
            written(strict, 3)
        written(warning, 3)
    assert [message for message in caplog.messages if message.endswith("The run continues without it.")]
    assert (warning.newest, warning.news(), checkpoint.steps_in(tmp_path)) == (-1, [], [])
    warning.on_error = "raise"
    with through(Full()), pytest.raises(CheckpointError, match="No space left"):
        written(warning, 4)


def written(writes, step):
    writes.write(taken(step))
    writes.wait()


def fail_after(writes):
    with writes.at_work_for("run"):
        writes.write(taken(1))
        raise ZeroDivisionError


def test_to_finish_hides_nothing_that_matters_more(tmp_path, caplog):
    writes = writer(tmp_path, background=True)
    with through(Full()):
        with pytest.raises(ZeroDivisionError):
            fail_after(writes)
        writes.write(taken(2))
        writes.finish()
    assert len([message for message in caplog.messages if "No space left" in message]) == 2
    with quietly():
        raise CheckpointError("the third")
    assert caplog.messages[-1] == "the third"


def test_the_folder_is_made_and_what_is_half_written_swept_out(tmp_path):
    folder = tmp_path / "new"
    with writer(folder).at_work_for("run"):
        assert folder.is_dir()
    (folder / "step-00000004.partial").mkdir()
    with writer(folder).at_work_for("run"):
        assert [path.name for path in folder.iterdir() if path.name.startswith("step")] == []


def test_the_folder_is_one_runs_and_one_writers_until_it_is_left(tmp_path):
    with writer(tmp_path).at_work_for("run"):
        with pytest.raises(CheckpointError, match="is in use by another Saver of this run"):
            writer(tmp_path).at_work_for("run").__enter__()
        with pytest.raises(CheckpointError, match="is in use by another run of this process"):
            writer(tmp_path).at_work_for("other").__enter__()
        with writer(tmp_path / "own").at_work_for("run"):
            pass
    with writer(tmp_path).at_work_for("other"):
        pass


def fail():
    raise OSError("full")


def interrupt(*given):
    raise KeyboardInterrupt


def test_the_loop_goes_on_while_work_is_in_progress():
    background, go, done = Background(), threading.Event(), []
    background.wait()  # there is nothing to wait for yet
    background.start(lambda: done.append(go.wait()))
    background.look()
    assert done == []
    go.set()
    background.wait()
    assert done == [True]


def test_the_next_piece_waits_for_the_one_before():
    background, order = Background(), []
    for number in range(20):
        background.start(lambda number=number: order.append(number))
    background.wait()
    assert order == list(range(20))


@pytest.mark.parametrize("end", ["wait", "start", "look"])
def test_an_error_is_raised_once_where_the_end_is_asked_for(end):
    background, done = Background(), []
    background.start(fail)
    background._thread.join()
    with pytest.raises(OSError, match="full"):
        getattr(background, end)(*([lambda: done.append(1)] if end == "start" else []))
    background.wait()
    background.look()
    assert done == []


def test_work_whose_wait_was_interrupted_continues_and_can_be_waited_for_again():
    background, go, done = Background(), threading.Event(), []
    background.start(lambda: done.append(go.wait()))
    with patch.object(threading.Thread, "join", interrupt), pytest.raises(KeyboardInterrupt):
        background.wait()
    assert done == []
    go.set()
    background.wait()
    assert done == [True]


def test_work_whose_start_was_interrupted_is_not_waited_for():
    background, done = Background(), []
    with patch.object(threading.Thread, "start", interrupt), pytest.raises(KeyboardInterrupt):
        background.start(lambda: done.append("first"))
    background.start(lambda: done.append("second"))
    background.wait()
    assert done == ["second"]
