"""The file of a record: whole lines, rows, and answers that are known again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import DataError
from onion.online import rows
from onion.online.rows import Answers, rows_of, whole_size


@pytest.mark.parametrize(
    ("content", "size"),
    [(b"", 0), (b"{}", 0), (b"{}\n", 3), (b"{}\n{", 3), (b"\n", 1), (b"a" * 10_000, 0), (b"a\n" + b"b" * 10_000, 2)],
)
def test_the_whole_size_ends_with_the_last_whole_line(tmp_path, content, size):
    file = tmp_path / "record"
    file.write_bytes(content)
    assert whole_size(file) == size
    assert whole_size(tmp_path / "none") == 0


@given(st.binary(max_size=20), st.integers(0, 9000))
def test_it_does_wherever_the_last_line_ends(tmp_path_factory, rest, length):
    file = tmp_path_factory.mktemp("whole") / "record"
    content = b"x" * length + b"\n" + rest.replace(b"\n", b" ")
    file.write_bytes(content)
    assert whole_size(file) == length + 1


def test_rows_come_with_the_place_where_they_end_and_no_further_than_wanted(tmp_path):
    file = tmp_path / "record"
    lines = [json.dumps({"batch": number, "samples": 3}).encode() + b"\n" for number in range(3)]
    file.write_bytes(b"".join(lines))
    ends = [len(b"".join(lines[: place + 1])) for place in range(3)]
    assert [(end, row["batch"]) for end, row in rows_of(file, ends[-1])] == list(zip(ends, range(3), strict=True))
    assert [row["batch"] for _, row in rows_of(file, ends[1])] == [0, 1]
    assert list(rows_of(file, 0)) == []


def test_a_line_that_is_no_row_is_said(tmp_path):
    file = tmp_path / "record"
    content = b'{"batch": 1, "samples": 2}\n\xff\n'
    file.write_bytes(content)
    with pytest.raises(DataError, match="record, line 2: this is no row of a record"):
        list(rows_of(file, len(content)))


@pytest.mark.parametrize(
    "row",
    [
        {"batch": 1},
        {"batch": -1, "samples": 2},
        {"batch": 1, "samples": 0},
        {"batch": True, "samples": 2},
        {"batch": 1, "pass_end": 1},
        {"batch": 1, "command": "set", "arguments": [], "number": 1, "step": 1},
        {"batch": 1, "command": "set", "arguments": {}, "number": "1", "step": 1},
        {"batch": 1, "command": "set", "arguments": {}, "number": 1, "step": 1, "key": 3},
        {"answer": 1},
        [1],
    ],
)
def test_what_looks_like_a_row_and_is_none_is_said(tmp_path, row):
    file = tmp_path / "record"
    file.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="line 1: this is no row"):
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


def test_a_command_whose_answer_was_cut_off_is_answered_unless_it_is_yet_to_come():
    answers = Answers()
    answers.take(command(1, "a"))
    answers.close([])
    assert answers.of("a").result(0).number == 1
    assert answers.of("a").result(0).error is None


def test_an_answer_that_was_written_is_not_written_again_for_a_command_that_is_yet_to_come():
    answers = Answers()
    for row in (command(1, None), answer(1, None), command(2, None), answer(2, None), command(3, None)):
        answers.take(row)
    answers.close([2, 3])
    assert answers.given(2)
    assert not answers.given(3)


def test_only_so_many_keys_are_remembered(monkeypatch):
    monkeypatch.setattr(rows, "KEYS", 3)
    answers = Answers()
    for number, key in enumerate("abcd", 1):
        answers.take(command(number, key))
    assert [answers.of(key) is None for key in "abcd"] == [True, False, False, False]
