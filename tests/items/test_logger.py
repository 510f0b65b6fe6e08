"""Logger: rows of JSON, written when due or when there is news, and read from the device no more often."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from onion import CheckpointError, Logger, Observer, Runner, Saver, Tester
from onion.testing import Batches, Failing, PlannedError, toy_network
from tests.items.learning import examples, learning
from tests.rings import Watch


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def timeless(path):
    there = rows(path)
    seconds = [row.pop("seconds") for row in there]
    assert seconds == sorted(seconds)
    return there


def logged(path):
    return [row["step"] for row in rows(path)]


def report(steps):
    return Observer(on_batch_end=lambda state: state.step in steps and state.report({"accuracy": state.step / 10}))


def test_a_row_holds_step_pass_seconds_loss_log_values_and_new_metrics(tmp_path):
    state = Runner(Logger(tmp_path / "log", 2), report({2}), examples(16), *learning(toy_network())).run(passes=1)
    first, second = rows(tmp_path / "log")
    keys = ["step", "pass", "seconds", "loss", "examples", "learning_rate"]
    assert (list(first), list(second)) == ([*keys, "accuracy"], keys)
    assert (first["step"], first["pass"], first["examples"], first["learning_rate"]) == (2, 0, 8, 0.05)
    assert first["accuracy"] == 0.2
    assert second["loss"] == float(state.loss)
    assert 0 <= first["seconds"] <= second["seconds"]


def at_the_end(figures):
    return Observer(on_pass_end=lambda state: state.report(figures))


FIGURES = {"a": np.float32(0.5), "b": np.int64(3), "c": float("inf")}
ENDS = [(4, 0, FIGURES), (8, 1, FIGURES), (10, 2, FIGURES)]


@pytest.mark.parametrize(
    ("every", "items", "expected"),
    [
        (3, [], [(3, 0, {}), (6, 1, {}), (9, 2, {})]),
        ("pass", [], [(4, 0, {}), (8, 1, {})]),  # not at the end of the pass that is cut
        (100, [report({2, 7})], [(2, 0, {"accuracy": 0.2}), (7, 1, {"accuracy": 0.7})]),  # once each
        (100, [at_the_end(FIGURES)], ENDS),
        (100, [at_the_end(FIGURES), report({4})], [(4, 0, {"accuracy": 0.4}), *ENDS]),
    ],
    ids=["every n steps", "every pass", "news", "news of the end of a pass", "beside that of its last batch"],
)
def test_rows_are_written(every, items, expected, tmp_path):
    Runner(Logger(tmp_path / "new" / "log", every), *items, Batches(4)).run(steps=10)
    assert timeless(tmp_path / "new" / "log") == [{"step": step, "pass": id, **more} for step, id, more in expected]


def test_rows_are_on_the_disk_during_the_run(tmp_path):
    written = Watch(lambda state: len(rows(tmp_path / "log")))
    Runner(Logger(tmp_path / "log", 1), written, Batches(3)).run(passes=1)
    assert written.seen == [0, 1, 2]


def test_a_file_that_belongs_to_no_checkpoint_is_moved_aside(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("precious\n")
    for _ in range(2):
        Runner(Logger(path, 1), Batches(1)).run(passes=1)
    assert (tmp_path / "metrics-1.jsonl").read_text() == "precious\n"
    assert timeless(tmp_path / "metrics-2.jsonl") == timeless(path) == [{"step": 1, "pass": 0}]


def test_an_empty_file_is_used(tmp_path):
    (tmp_path / "log").touch()
    Runner(Logger(tmp_path / "log", 1), Batches(1)).run(passes=1)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_second_run_of_the_same_runner_writes_its_news_to_a_new_file(tmp_path):
    runner = Runner(Logger(tmp_path / "log", 100), report({1}), Batches(2))
    for _ in range(2):
        runner.run(passes=1)
    assert timeless(tmp_path / "log") == timeless(tmp_path / "log-1") == [{"step": 1, "pass": 0, "accuracy": 0.1}]


def test_the_file_is_closed_after_an_error_and_holds_the_rows_before(tmp_path):
    logger = Logger(tmp_path / "log", 1)
    with pytest.raises(PlannedError):
        Runner(logger, Failing("on_batch", "out", 2), Batches(5)).run(passes=1)
    assert logged(tmp_path / "log") == [1, 2]
    assert logger._file is None


def test_a_test_that_shares_the_logger_writes_no_row(tmp_path):
    logger = Logger(tmp_path / "log", 1)
    Runner(logger, Tester(Runner(logger, Batches(2)), every=2), Batches(4)).run(passes=1)
    assert logged(tmp_path / "log") == [1, 2, 3, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


# -- with a saver ----------------------------------------------------------------------------------------------------


def onion(folder, *extra, save=100, log=1, **saver):
    return Runner(Saver(folder, every=save, **saver), Logger(folder / "log", log), *extra, examples(10, 1))


def killed(at, *items, **settings):
    with pytest.raises(PlannedError):
        onion(*items, Failing("on_batch", "in", at), **settings).run(passes=1)


def test_rows_after_the_checkpoint_are_cut(tmp_path):
    killed(7, tmp_path, save=3)
    assert logged(tmp_path / "log") == [1, 2, 3, 4, 5, 6, 7]
    killed(6, tmp_path, save=3)
    assert logged(tmp_path / "log") == [1, 2, 3, 4, 5, 6]
    onion(tmp_path, save=3).run(passes=1)
    assert [row["step"] for row in timeless(tmp_path / "log")] == list(range(1, 11))
    assert not (tmp_path / "log-1").exists()


def damage(folder, step):
    (folder / f"step-{step:08d}" / "state.json").write_text("")


def test_rows_after_a_checkpoint_that_knew_of_none_are_cut_too(tmp_path):
    killed(2, tmp_path, save=1, log=2)
    damage(tmp_path, 2)
    assert logged(tmp_path / "log") == [2]
    onion(tmp_path, save=1, log=2).run(steps=4)
    assert logged(tmp_path / "log") == [2, 4]
    assert not (tmp_path / "log-1").exists()


def test_a_checkpoint_before_the_first_row_of_a_resumed_run_knows_the_length_of_the_log(tmp_path):
    killed(9, tmp_path, save=3)
    damage(tmp_path, 9)
    onion(tmp_path, save=1, log=100).run(steps=7)  # cuts the rows after 6, saves at 7, writes no row
    assert logged(tmp_path / "log") == [1, 2, 3, 4, 5, 6]
    offset = json.loads((tmp_path / "step-00000007" / "state.json").read_text())["items"]["logger"]["offset"]
    assert offset == (tmp_path / "log").stat().st_size


def test_a_log_that_is_gone_is_begun_again(tmp_path):
    onion(tmp_path).run(steps=4)
    (tmp_path / "log").unlink()
    onion(tmp_path).run(steps=6)
    assert logged(tmp_path / "log") == [5, 6]


def test_a_log_may_be_moved_to_another_folder_with_its_run(tmp_path):
    onion(tmp_path / "here").run(steps=4)
    (tmp_path / "here").rename(tmp_path / "there")
    onion(tmp_path / "there").run(steps=6)
    assert logged(tmp_path / "there" / "log") == [1, 2, 3, 4, 5, 6]


def test_a_logger_that_takes_over_anothers_name_leaves_its_own_file_whole(tmp_path):
    """Of two loggers, the second is alone when the run is resumed: by then it has the name of the first."""
    onion(tmp_path, Logger(tmp_path / "b", 2)).run(steps=6)
    before = rows(tmp_path / "b")
    onion(tmp_path, resume="force").replace(Logger, Logger(tmp_path / "b", 2)).run(steps=10)
    assert rows(tmp_path / "b-1") == before
    assert logged(tmp_path / "b") == [8, 10]
    assert logged(tmp_path / "log") == [1, 2, 3, 4, 5, 6]


def test_a_resumed_logger_of_another_file_moves_what_is_there_aside(tmp_path):
    onion(tmp_path, report({2})).run(steps=4)
    (tmp_path / "other").write_text("precious\n" * 50)
    onion(tmp_path, report({2})).replace(Logger, Logger(tmp_path / "other", 1)).run(steps=6)
    assert (tmp_path / "other-1").read_text() == "precious\n" * 50
    assert timeless(tmp_path / "other") == [{"step": step, "pass": 0, "examples": step} for step in (5, 6)]
    assert logged(tmp_path / "log") == [1, 2, 3, 4]


def test_a_state_without_the_files_name_is_of_this_file(tmp_path):
    logger, resumed = Logger(tmp_path / "log", 1), Logger(tmp_path / "log", 1)
    Runner(logger, Batches(3)).run(passes=1)
    saved = logger.state_dict()
    assert saved.pop("file") == "log"
    resumed.load_state_dict(saved)
    Runner(resumed, Batches(2)).run(passes=1)
    assert logged(tmp_path / "log") == [1, 2, 3, 1, 2]


# -- a disk that refuses ---------------------------------------------------------------------------------------------


def a_file_in_place_of_the_folder(path, monkeypatch):
    path.parent.write_text("")


def full(path, monkeypatch):
    path.parent.mkdir()
    path.symlink_to("/dev/full")


def no_sync(path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (a_file_in_place_of_the_folder, r"(Not a directory|File exists)"),
        pytest.param(
            full, "", marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full"), id="full"
        ),
        (no_sync, "No space left on device"),
    ],
)
def test_a_disk_that_refuses_is_an_error_with_the_path_and_the_file_is_closed(spoil, said, tmp_path, monkeypatch):
    spoil(tmp_path / "folder" / "log", monkeypatch)
    logger = Logger(tmp_path / "folder" / "log", 1)
    with pytest.raises(CheckpointError, match=rf"cannot write the log .*folder/log: {said}"):
        Runner(logger, Batches(3)).run(passes=1)
    assert logger._file is None
