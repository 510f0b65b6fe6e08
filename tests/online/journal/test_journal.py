"""Journal: where its file is, what it writes and follows; its rows; answers by key."""

import errno
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import CheckpointError, CompositionError, DataError, Observer, Runner, Saver
from onion.checkpointing.atomic_files import Files, through
from onion.online.control.control_server import ControlServer
from onion.online.journal import journal as module
from onion.online.journal.journal import Answers, Journal, rows_of, whole_size
from onion.testing import Batches
from tests.online.control.steered import samples, steered
from tests.online.toys import Line, rows_in
from tests.patience import PATIENCE


def ignore(journal, state): ...


def note(journal, state):
    journal.note({"batch": 9, "samples": 1})


def in_run(path, act, *, saver=None, steps=3):
    """Call ``act(journal, state)`` at the end of each batch."""
    journal = Journal(path)
    watch = Observer(on_batch_end=lambda state: act(journal, state))
    Runner(*([saver] if saver else []), journal, Batches(5), watch).run(steps=steps)
    return journal


def test_rows_are_in_the_file_at_once_and_commands_have_numbers(tmp_path):
    path, sizes = tmp_path / "deep" / "journal.jsonl", []

    def act(journal, state):
        journal.note({"batch": state.step, "samples": 2})
        row = journal.command(state.step, state.step, "set", {"a": 1}, None)
        journal.answer(row, {"a": 1}, None)
        sizes.append(len(rows_in(path)))

    journal = in_run(path, act)
    assert sizes == [3, 6, 9]
    assert [row["number"] for row in rows_in(path) if "number" in row] == [1, 2, 3]
    assert journal.commands == 3


def test_its_default_place_is_beside_the_checkpoints(tmp_path):
    in_run(None, note, saver=Saver(tmp_path))
    assert len(rows_in(tmp_path / "journal.jsonl")) == 3


def test_a_file_of_an_earlier_version_is_continued(tmp_path):
    (tmp_path / "control.jsonl").write_text('{"batch": 1, "samples": 2}\n')
    in_run(None, lambda journal, state: journal.due(state.step, "samples"), saver=Saver(tmp_path))
    in_run(None, note, saver=Saver(tmp_path), steps=4)
    assert [row["batch"] for row in rows_in(tmp_path / "control.jsonl")] == [1, 9]
    assert not (tmp_path / "journal.jsonl").exists()


def test_without_a_path_and_a_saver_it_is_refused():
    with pytest.raises(CompositionError, match=r"journal has no folder for journal.jsonl: put a Saver around it"):
        in_run(None, ignore)


def test_two_journals_are_refused(tmp_path):
    with pytest.raises(CompositionError, match="a run has one Journal"):
        Runner(Journal(tmp_path / "a"), Journal(tmp_path / "b"), Batches(1))


def test_a_run_without_a_checkpoint_follows_what_is_there(tmp_path):
    path, found = tmp_path / "journal.jsonl", []
    path.write_text('{"batch": 1, "samples": 2}\n{"batch": 2, "pass_end": true}\n')

    def act(journal, state):
        found.append(
            (journal.follows(state.step), *(journal.due(state.step, kind) for kind in ("samples", "pass_end")))
        )

    in_run(path, act)
    assert found == [
        (True, {"batch": 1, "samples": 2}, None),
        (True, None, {"batch": 2, "pass_end": True}),
        (False, None, None),
    ]


def test_a_checkpoint_during_the_following_stores_what_was_followed(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps({"batch": number, "samples": 2}) + "\n" for number in (1, 3)))
    in_run(None, lambda journal, state: journal.due(state.step, "samples"), saver=Saver(tmp_path), steps=2)
    left = []
    in_run(None, lambda journal, state: left.append(journal.due(state.step, "samples")), saver=Saver(tmp_path), steps=4)
    assert left == [{"batch": 3, "samples": 2}, None]


def test_an_inner_run_that_shares_it_leaves_it_open(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    inner = Runner(journal, Batches(1))
    watch = Observer(on_batch_end=lambda state: (inner.run(passes=1, parent=state), journal.note({"batch": 0})))
    Runner(journal, Batches(2), watch).run(passes=1)
    assert len(rows_in(journal.path)) == 2


class FullDisk(Files):
    """Refuses the journal's rows only."""

    def write(self, file, content):
        if b'"batch"' in content:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(file, content)


def test_a_command_that_cannot_be_recorded_does_not_take_effect(tmp_path):
    asked = []

    def ask(state):
        if state.next_step == 2:
            asked.append(runner[ControlServer].ask("set", {"learning_rate": 0.5}))

    runner = steered(Line(samples(80)), tmp_path, at=ask)
    with through(FullDisk()), pytest.raises(CheckpointError, match=r"cannot write the journal .*No space left"):
        runner.run(steps=4)
    assert runner["parameter_updater"].rate is None
    with pytest.raises(Exception, match="not carried out"):
        asked[0].result(PATIENCE)


@pytest.mark.parametrize(
    ("content", "size"),
    [(b"", 0), (b"{}", 0), (b"{}\n", 3), (b"{}\n{", 3), (b"\n", 1), (b"a" * 10_000, 0), (b"a\n" + b"b" * 10_000, 2)],
)
def test_the_whole_size_is_that_of_the_complete_lines(tmp_path, content, size):
    file = tmp_path / "journal"
    file.write_bytes(content)
    assert whole_size(file) == size
    assert whole_size(tmp_path / "none") == 0


@given(st.binary(max_size=20), st.integers(0, 9000))
def test_the_whole_size_for_any_length_of_the_last_line(tmp_path_factory, rest, length):
    file = tmp_path_factory.mktemp("whole") / "journal"
    content = b"x" * length + b"\n" + rest.replace(b"\n", b" ")
    file.write_bytes(content)
    assert whole_size(file) == length + 1


def test_rows_come_with_the_offsets_of_their_ends_up_to_a_size(tmp_path):
    file = tmp_path / "journal"
    lines = [json.dumps({"batch": number, "samples": 3}).encode() + b"\n" for number in range(3)]
    file.write_bytes(b"".join(lines))
    ends = [len(b"".join(lines[: place + 1])) for place in range(3)]
    assert [(end, row["batch"]) for end, row in rows_of(file, ends[-1])] == list(zip(ends, range(3), strict=True))
    assert [row["batch"] for _, row in rows_of(file, ends[1])] == [0, 1]
    assert list(rows_of(file, 0)) == []


@pytest.mark.parametrize(
    "line",
    [
        b"\xff",
        b"nonsense",
        b"[]",
        *(
            json.dumps(row).encode()
            for row in (
                {"batch": 1},
                {"step": 1},
                {"batch": -1, "samples": 2},
                {"batch": 1, "samples": 0},
                {"batch": True, "samples": 2},
                {"batch": 1, "pass_end": 1},
                {"batch": 1, "command": "set", "arguments": [], "number": 1, "step": 1},
                {"batch": 1, "command": "set", "arguments": {}, "number": "1", "step": 1},
                {"batch": 1, "command": "set", "arguments": {}, "number": 1, "step": 1, "key": 3},
                {"answer": 1},
                [1],
            )
        ),
    ],
)
def test_a_line_that_is_not_a_row_is_an_error_with_its_number(tmp_path, line):
    file = tmp_path / "journal"
    file.write_bytes(b'{"batch": 1, "samples": 2}\n' + line + b"\n")
    with pytest.raises(DataError, match="journal, line 2: this is no row of a journal"):
        list(rows_of(file, file.stat().st_size))


def command(number, key):
    return {"batch": 1, "number": number, "command": "set", "arguments": {}, "key": key, "step": 4}


def answer(number, key, result=None):
    return {"answer": number, "command": "set", "step": 4, "result": result, "error": None, "key": key}


def test_answers_are_known_by_their_keys():
    answers = Answers()
    for row in (command(1, "a"), answer(1, "a", "done"), command(2, None), answer(2, None), command(3, "b")):
        answers.take(row)
    answers.close([3])
    assert answers.number == 3
    assert answers.of("a").result(0).result == "done"
    assert not answers.of("b").done()
    assert answers.of("c") is None
    assert answers.of(None) is None


def test_a_command_whose_answer_was_lost_is_answered_unless_it_will_be_repeated():
    answers = Answers()
    answers.take(command(1, "a"))
    answers.close([])
    answer = answers.of("a").result(0)
    assert (answer.number, answer.error) == (1, None)


def test_the_answer_of_a_repeated_command_is_written_once():
    answers = Answers()
    for row in (command(1, None), answer(1, None), command(2, None), answer(2, None), command(3, None)):
        answers.take(row)
    answers.close([2, 3])
    assert answers.given(2)
    assert not answers.given(3)


def test_a_limited_number_of_keys_is_remembered(monkeypatch):
    monkeypatch.setattr(module, "MAX_KEYS", 3)
    answers = Answers()
    for number, key in enumerate("abcd", 1):
        answers.take(command(number, key))
    assert [answers.of(key) is None for key in "abcd"] == [True, False, False, False]
