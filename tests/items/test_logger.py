"""Logger: rows of JSON, written when due or when there is news, and read from the device no more often."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
    DataProvider,
    GradientMachine,
    Logger,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    Tester,
)
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network


class Counted:
    """A loss that counts how often it is read."""

    def __init__(self, value=0.5):
        self.value, self.reads = value, 0

    def __float__(self):
        self.reads += 1
        return self.value


class Costing(RunnerItem):
    def __init__(self, loss=None):
        self.loss = loss or Counted()

    def on_batch(self, state):
        state.loss = self.loss


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def timeless(path):
    there = rows(path)
    for row in there:
        assert row.pop("seconds") >= 0
    return there


def report(steps, name="accuracy"):
    return Observer(on_batch_end=lambda state: state.step in steps and state.report({name: state.step / 10}))


def test_a_row_holds_step_pass_seconds_cost_readings_and_new_metrics(tmp_path):
    network = toy_network()
    optimizer = paddle.optimizer.SGD(0.25, parameters=network.parameters())
    state = Runner(
        Logger(tmp_path / "log.jsonl", every=2),
        report({2}),
        DataProvider(toy_examples(16), 4, prefetch=0),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    ).run(passes=1)
    first, second = rows(tmp_path / "log.jsonl")
    assert list(first) == ["step", "pass", "seconds", "loss", "examples", "learning_rate", "accuracy"]
    assert list(second) == ["step", "pass", "seconds", "loss", "examples", "learning_rate"]
    assert (first["step"], first["pass"], first["examples"], first["learning_rate"]) == (2, 0, 8, 0.25)
    assert first["accuracy"] == 0.2
    assert second["loss"] == float(state.loss)
    assert 0 <= first["seconds"] <= second["seconds"]


def test_a_row_is_written_every_n_steps_over_all_passes(tmp_path):
    Runner(Logger(tmp_path / "log", 3), Batches(4)).run(passes=2)
    assert timeless(tmp_path / "log") == [{"step": 3, "pass": 0}, {"step": 6, "pass": 1}]


def test_a_row_is_written_at_the_end_of_every_pass_that_was_not_cut(tmp_path):
    Runner(Logger(tmp_path / "log", "pass"), Batches(4)).run(steps=10)
    assert timeless(tmp_path / "log") == [{"step": 4, "pass": 0}, {"step": 8, "pass": 1}]


def test_news_is_written_at_once_and_once(tmp_path):
    Runner(Logger(tmp_path / "log", 100), report({2, 5}), Batches(9)).run(passes=1)
    assert timeless(tmp_path / "log") == [
        {"step": 2, "pass": 0, "accuracy": 0.2},
        {"step": 5, "pass": 0, "accuracy": 0.5},
    ]


def test_news_of_the_end_of_a_pass_is_written_though_other_news_came_with_its_last_batch(tmp_path):
    at_the_end = Observer(on_pass_end=lambda state: state.report({"whole": 1.0}))
    Runner(Logger(tmp_path / "log", 100), at_the_end, report({4}), Batches(4)).run(passes=1)
    assert timeless(tmp_path / "log") == [
        {"step": 4, "pass": 0, "accuracy": 0.4},
        {"step": 4, "pass": 0, "whole": 1.0},
    ]


def test_the_loss_is_read_for_rows_only(tmp_path):
    costing = Costing()
    Runner(Logger(tmp_path / "log", 5), costing, Batches(14)).run(passes=1)
    assert costing.loss.reads == 2
    assert [row["loss"] for row in rows(tmp_path / "log")] == [0.5, 0.5]


def test_numbers_of_numpy_and_special_ones_are_written(tmp_path):
    figures = {"a": np.float32(0.5), "b": np.int64(3), "c": float("inf")}
    Runner(Logger(tmp_path / "log"), Observer(on_batch_end=lambda state: state.report(figures)), Batches(1)).run(1)
    assert timeless(tmp_path / "log") == [{"step": 1, "pass": 0, "a": 0.5, "b": 3, "c": float("inf")}]


def test_rows_are_on_the_disk_while_the_run_goes_on(tmp_path):
    seen = []
    watch = Observer(on_batch_begin=lambda state: seen.append(len(rows(tmp_path / "log"))))
    Runner(Logger(tmp_path / "log", 1), watch, Batches(3)).run(passes=1)
    assert seen == [0, 1, 2]


def test_the_folder_is_made(tmp_path):
    Runner(Logger(tmp_path / "deep" / "er" / "log", 1), Batches(1)).run(passes=1)
    assert len(rows(tmp_path / "deep" / "er" / "log")) == 1


def test_a_file_that_belongs_to_no_checkpoint_is_moved_aside(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("precious\n")
    for _ in range(2):
        Runner(Logger(path, 1), Batches(1)).run(passes=1)
    assert (tmp_path / "metrics-1.jsonl").read_text() == "precious\n"
    assert timeless(tmp_path / "metrics-2.jsonl") == timeless(path) == [{"step": 1, "pass": 0}]


def test_an_empty_file_is_simply_used(tmp_path):
    (tmp_path / "log").touch()
    Runner(Logger(tmp_path / "log", 1), Batches(1)).run(passes=1)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_second_run_of_the_same_runner_writes_its_news_to_a_file_of_its_own(tmp_path):
    runner = Runner(Logger(tmp_path / "log", 100), report({1}), Batches(2))
    runner.run(passes=1)
    runner.run(passes=1)
    assert timeless(tmp_path / "log") == timeless(tmp_path / "log-1") == [{"step": 1, "pass": 0, "accuracy": 0.1}]


def test_the_file_is_closed_after_an_error_and_holds_the_rows_before(tmp_path):
    logger = Logger(tmp_path / "log", 1)
    with pytest.raises(PlannedError):
        Runner(logger, Failing("on_batch", "out", 2), Batches(5)).run(passes=1)
    assert [row["step"] for row in rows(tmp_path / "log")] == [1, 2]
    assert logger._file is None


# -- with a saver ----------------------------------------------------------------------------------------------------


def onion(folder, *extra, save=100, log=1):
    return Runner(
        Saver(folder, every=save),
        Logger(folder / "log", log),
        *extra,
        DataProvider(list(range(10)), 1, prefetch=0),
    )


def logged(folder):
    return [row["step"] for row in rows(folder / "log")]


def test_the_rows_of_the_whole_run_are_kept_by_the_checkpoint_at_its_end(tmp_path):
    onion(tmp_path).run(steps=4)
    onion(tmp_path).run(steps=6)
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert not (tmp_path / "log-1").exists()


def test_rows_after_the_checkpoint_are_cut(tmp_path):
    with pytest.raises(PlannedError):
        onion(tmp_path, Failing("on_batch", "in", 7), save=3).run(passes=1)
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(PlannedError):
        onion(tmp_path, Failing("on_batch", "in", 6), save=3).run(passes=1)
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6]
    onion(tmp_path, save=3).run(passes=1)
    assert logged(tmp_path) == list(range(1, 11))


def test_rows_after_a_checkpoint_that_knew_of_none_are_cut_too(tmp_path):
    with pytest.raises(PlannedError):
        onion(tmp_path, Failing("on_batch", "in", 2), save=1, log=2).run(passes=1)
    for path in tmp_path.glob("step-00000002"):
        (path / "state.json").write_text("")
    assert logged(tmp_path) == [2]
    onion(tmp_path, save=1, log=2).run(steps=4)
    assert logged(tmp_path) == [2, 4]
    assert not (tmp_path / "log-1").exists()


def test_a_checkpoint_before_the_first_row_of_a_resumed_run_knows_the_length_of_the_log(tmp_path):
    with pytest.raises(PlannedError):
        onion(tmp_path, Failing("on_batch", "in", 9), save=3, log=1).run(passes=1)
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    damaged = tmp_path / "step-00000009" / "state.json"
    damaged.write_text("")
    onion(tmp_path, save=1, log=100).run(steps=7)  # cuts the rows after 6, saves at 7, writes no row
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6]
    offset = json.loads((tmp_path / "step-00000007" / "state.json").read_text())["items"]["logger"]["offset"]
    assert offset == (tmp_path / "log").stat().st_size


def test_a_row_torn_by_a_kill_is_cut(tmp_path):
    onion(tmp_path).run(steps=4)
    with (tmp_path / "log").open("a") as file:
        file.write('{"step": 5, "pa')
    onion(tmp_path).run(steps=6)
    assert logged(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_a_log_that_is_gone_is_begun_again(tmp_path):
    onion(tmp_path).run(steps=4)
    (tmp_path / "log").unlink()
    onion(tmp_path).run(steps=6)
    assert logged(tmp_path) == [5, 6]


def test_seconds_go_on_after_a_resumption(tmp_path):
    onion(tmp_path).run(steps=4)
    onion(tmp_path).run(steps=8)
    seconds = [row["seconds"] for row in rows(tmp_path / "log")]
    assert seconds == sorted(seconds)


def test_news_that_was_logged_is_not_logged_again_after_a_resumption(tmp_path):
    onion(tmp_path, report({3}), log=100).run(steps=4)
    onion(tmp_path, report({3}), log=100).run(passes=1)
    assert logged(tmp_path) == [3]


def test_a_logger_that_takes_over_anothers_name_leaves_its_own_file_whole(tmp_path):
    """Of two loggers, the second is alone when the run goes on: by then it has the name of the first."""

    def run(*items, **limits):
        provider = DataProvider(list(range(10)), 1, prefetch=0)
        Runner(Saver(tmp_path, every=100, resume="force"), *items, provider).run(**limits)

    run(Logger(tmp_path / "a.jsonl", 1), Logger(tmp_path / "b.jsonl", 2), steps=6)
    before = rows(tmp_path / "b.jsonl")
    run(Logger(tmp_path / "b.jsonl", 2), steps=10)
    assert rows(tmp_path / "b-1.jsonl") == before
    assert [row["step"] for row in rows(tmp_path / "b.jsonl")] == [8, 10]
    assert [row["step"] for row in rows(tmp_path / "a.jsonl")] == [1, 2, 3, 4, 5, 6]


def test_a_resumed_logger_of_another_file_moves_what_is_there_aside(tmp_path):
    onion(tmp_path, report({2})).run(steps=4)
    (tmp_path / "other").write_text("precious\n" * 50)
    onion(tmp_path, report({2})).replace(Logger, Logger(tmp_path / "other", 1)).run(steps=6)
    assert (tmp_path / "other-1").read_text() == "precious\n" * 50
    assert timeless(tmp_path / "other") == [{"step": step, "pass": 0, "examples": step} for step in (5, 6)]
    assert logged(tmp_path) == [1, 2, 3, 4]


def test_a_log_may_be_moved_to_another_folder_with_its_run(tmp_path):
    onion(tmp_path / "here").run(steps=4)
    (tmp_path / "here").rename(tmp_path / "there")
    onion(tmp_path / "there").run(steps=6)
    assert logged(tmp_path / "there") == [1, 2, 3, 4, 5, 6]


def test_a_state_that_does_not_know_the_files_name_is_of_this_file(tmp_path):
    logger = Logger(tmp_path / "log", 1)
    Runner(logger, Batches(3)).run(passes=1)
    saved = logger.state_dict()
    assert saved.pop("file") == "log"
    resumed = Logger(tmp_path / "log", 1)
    resumed.load_state_dict(saved)
    Runner(resumed, Batches(2)).run(passes=1)
    assert logged(tmp_path) == [1, 2, 3, 1, 2]


def test_a_test_that_shares_the_logger_writes_no_row(tmp_path):
    logger = Logger(tmp_path / "log", 1)
    test = Runner(logger, Batches(2))
    Runner(logger, Tester(test, every=2), Batches(4)).run(passes=1)
    assert logged(tmp_path) == [1, 2, 3, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


# -- a disk that refuses ---------------------------------------------------------------------------------------------


def test_a_folder_in_the_place_of_the_file_is_an_error_that_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot write the log .*file/log: (Not a directory|File exists)"):
        Runner(Logger(tmp_path / "file" / "log"), Batches(1)).run(passes=1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_an_error_that_says_so_and_closes_the_file(tmp_path):
    (tmp_path / "log").symlink_to("/dev/full")
    logger = Logger(tmp_path / "log", 1)
    with pytest.raises(CheckpointError, match=r"cannot write the log .*/log: "):
        Runner(logger, Batches(3)).run(passes=1)
    assert logger._file is None


def test_a_sync_that_fails_is_an_error_that_says_so_and_closes_the_file(tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    logger = Logger(tmp_path / "log", 1)
    with pytest.raises(CheckpointError, match=r"cannot write the log .*log: No space left on device"):
        Runner(logger, Batches(1)).run(passes=1)
    assert logger._file is None
