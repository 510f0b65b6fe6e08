"""Record: where it stands, what it writes, what it follows. What a run makes of it: test_control.py, test_replay.py."""

import errno
import json

import pytest

from onion import CheckpointError, CompositionError, Observer, Runner, Saver
from onion.checkpointing.atomic_files import Files, through
from onion.online.control import Control
from onion.online.record import Record
from onion.testing import Batches
from tests.online.lines import Line
from tests.online.steered import samples, steered
from tests.patience import PATIENCE


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_run(path, act, *, saver=None, steps=3):
    """Call ``act(record, state)`` at the end of each batch."""
    record = Record(path)
    watch = Observer(on_batch_end=lambda state: act(record, state))
    Runner(*([saver] if saver else []), record, Batches(5), watch).run(steps=steps)
    return record


def test_rows_are_in_the_file_at_once_and_commands_have_numbers(tmp_path):
    path, sizes = tmp_path / "deep" / "record.jsonl", []

    def act(record, state):
        record.note({"batch": state.step, "samples": 2})
        row = record.command(state.step, state.step, "set", {"a": 1}, None)
        record.answer(row, {"a": 1}, None)
        sizes.append(len(rows(path)))

    record = in_run(path, act)
    assert sizes == [3, 6, 9]
    assert [row["number"] for row in rows(path) if "number" in row] == [1, 2, 3]
    assert record.commands == 3


def test_its_place_is_beside_the_checkpoints(tmp_path):
    in_run(None, lambda record, state: record.note({"batch": 9, "samples": 1}), saver=Saver(tmp_path))
    assert len(rows(tmp_path / "control.jsonl")) == 3


def test_without_a_place_and_a_saver_it_says_so():
    with pytest.raises(CompositionError, match=r"record has no place for control.jsonl: put a Saver around it"):
        in_run(None, lambda record, state: None)


def test_two_of_them_are_refused(tmp_path):
    with pytest.raises(CompositionError, match="a run has one Record"):
        Runner(Record(tmp_path / "a"), Record(tmp_path / "b"), Batches(1))


def test_a_run_without_a_checkpoint_follows_what_is_there(tmp_path):
    path, found = tmp_path / "record.jsonl", []
    path.write_text('{"batch": 1, "samples": 2}\n{"batch": 2, "pass_end": true}\n')

    def act(record, state):
        found.append(
            (record.follows(state.step), record.due(state.step, "samples"), record.due(state.step, "pass_end"))
        )

    in_run(path, act)
    assert found == [
        (True, {"batch": 1, "samples": 2}, None),
        (True, None, {"batch": 2, "pass_end": True}),
        (False, None, None),
    ]


def test_a_checkpoint_during_the_following_knows_what_was_followed(tmp_path):
    path = tmp_path / "control.jsonl"
    path.write_text("".join(json.dumps({"batch": number, "samples": 2}) + "\n" for number in (1, 3)))
    in_run(None, lambda record, state: record.due(state.step, "samples"), saver=Saver(tmp_path), steps=2)
    left = []
    in_run(None, lambda record, state: left.append(record.due(state.step, "samples")), saver=Saver(tmp_path), steps=4)
    assert left == [{"batch": 3, "samples": 2}, None]


def test_a_run_inside_that_shares_it_leaves_it_open(tmp_path):
    record = Record(tmp_path / "record.jsonl")
    inner = Runner(record, Batches(1))
    watch = Observer(on_batch_end=lambda state: (inner.run(passes=1, parent=state), record.note({"batch": 0})))
    Runner(record, Batches(2), watch).run(passes=1)
    assert len(rows(record.path)) == 2


class FullDisk(Files):
    """Refuses the record's rows, and only those."""

    def write(self, file, content):
        if b'"batch"' in content:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(file, content)


def test_a_command_that_cannot_be_recorded_does_not_take_effect(tmp_path):
    asked = []

    def ask(state):
        if state.next_step == 2:
            asked.append(runner[Control].ask("set", {"learning_rate": 0.5}))

    runner = steered(Line(samples(80)), tmp_path, at=ask)
    with through(FullDisk()), pytest.raises(CheckpointError, match=r"cannot write the record .*No space left"):
        runner.run(steps=4)
    assert runner["parameter_updater"].rate is None
    with pytest.raises(Exception, match="not carried out"):
        asked[0].result(PATIENCE)
