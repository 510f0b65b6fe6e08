"""Reading files: what is right comes out as rows, what is wrong as one DataError that says where."""

import csv
import gc
import gzip
import json
import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onion.data import files, iter_rows, read_rows
from onion.data.files import iter_lines
from onion.errors import DataError


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fault(path, columns=(), optional=()):
    with pytest.raises(DataError) as caught:
        read_rows(path, columns, optional)
    assert ";" in str(caught.value), "an error also says what to do"
    return str(caught.value).replace(f"{path.parent}{os.sep}", "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "label\ttext_a\n1\tgood\n0\tbad\n"),
        ("a.TSV", "label\ttext_a\n1\tgood\n0\tbad\n"),
        ("bom.tsv", "\ufefflabel\ttext_a\n1\tgood\n0\tbad\n"),
        ("windows.tsv", "label\ttext_a\r\n1\tgood\r\n0\tbad\r\n"),
        ("open_end.tsv", "label\ttext_a\n1\tgood\n0\tbad"),
        ("blank_end.tsv", "label\ttext_a\n1\tgood\n0\tbad\n\n\r\n"),
        ("order.tsv", "id\ttext_a\tlabel\n7\tgood\t1\n8\tbad\t0\n"),
        ("a.csv", 'label,text_a\n1,good\n"0",bad\n'),
        ("windows.csv", "\ufefflabel,text_a\r\n1,good\r\n0,bad\r\n\r\n"),
        ("a.jsonl", '{"label": "1", "text_a": "good"}\n{"text_a": "bad", "label": "0", "id": 3}\n\n'),
    ],
)
def test_one_table_in_many_forms(tmp_path, name, content):
    rows = read_rows(write(tmp_path, name, content), ["label", "text_a"])
    assert list(rows) == [{"label": "1", "text_a": "good"}, {"label": "0", "text_a": "bad"}]
    assert [rows[0], rows[-1]] == list(rows)
    assert len(rows) == 2
    streamed = iter_rows(tmp_path / name, ["label", "text_a"])
    assert list(streamed) == [(rows.line(place), row) for place, row in enumerate(rows)]


def test_lines_of_plain_texts_packed_or_not(tmp_path):
    content = "\ufefffirst\r\n\n third "
    wanted = [(1, "first"), (2, ""), (3, " third ")]
    assert list(iter_lines(write(tmp_path, "a.txt", content))) == wanted
    packed = gzip.compress(content.encode())
    assert list(iter_lines(write(tmp_path, "a.TXT.GZ", packed))) == wanted
    with pytest.raises(DataError, match=r"cut\.gz:\d: the file is not gzip, or was cut off here .*; copy it anew"):
        list(iter_lines(write(tmp_path, "cut.gz", packed[:-5])))


def test_tsv_has_no_quoting(tmp_path):
    rows = read_rows(write(tmp_path, "a.tsv", 'a\tb\n"x\ty"\n\\t\t\x85\u2028\x0c\r\x1c\n'))
    assert list(rows) == [{"a": '"x', "b": 'y"'}, {"a": "\\t", "b": "\x85\u2028\x0c\r\x1c"}]


def test_csv_cells_hold_commas_quotes_and_line_breaks(tmp_path):
    rows = read_rows(write(tmp_path, "a.csv", 'a,b\n"1,5","say ""hi"""\n"two\r\nlines\n",x\ny,z\n'))
    assert list(rows) == [{"a": "1,5", "b": 'say "hi"'}, {"a": "two\r\nlines\n", "b": "x"}, {"a": "y", "b": "z"}]
    assert [rows.line(i) for i in range(3)] == [2, 3, 6]


ONE_ROW = {"a.tsv": "a\tb\n1\t2\n", "a.csv": "a,b\n1,2\n", "a.jsonl": '{"a": "1", "b": "2"}\n'}


@pytest.mark.parametrize(("name", "content"), ONE_ROW.items(), ids=ONE_ROW)
def test_columns_asked_for(tmp_path, name, content):
    path = write(tmp_path, name, content)
    assert read_rows(path)[0] == {"a": "1", "b": "2"}
    assert read_rows(path, ["b"])[0] == {"b": "2"}
    assert read_rows(path, ["b"], ["a", "c"])[0] == {"b": "2", "a": "1"}
    assert read_rows(path, optional=["a", "b"])[0] == {"a": "1", "b": "2"}


def test_json_values_stay_what_they_are_and_objects_may_differ_in_what_was_not_asked_for(tmp_path):
    row = {"n": 1.5, "list": ["a", None], "text": "\u2028\u0000", "yes": True}
    assert read_rows(write(tmp_path, "a.jsonl", json.dumps(row)))[0] == row
    path = write(tmp_path, "a.jsonl", '{"a": 1}\n{"a": 2, "b": 3}\n{"c": 4, "a": 5}\n')
    assert list(read_rows(path)) == [{"a": 1}, {"a": 2, "b": 3}, {"a": 5, "c": 4}]
    assert list(read_rows(path, ["a"], ["b"])) == [{"a": 1}, {"a": 2, "b": 3}, {"a": 5}]


def test_rows_remember_their_lines(tmp_path):
    path = write(tmp_path, "a.tsv", "a\nx\ny\nz\n")
    rows = read_rows(path)
    assert str(rows.error(1, "no label y; use x")) == f"{path}:3: no label y; use x"
    assert rows[1:].line(0) == 3
    assert list(rows[1:]) == [{"a": "y"}, {"a": "z"}]
    assert repr(rows) == f"Table({str(path)!r}, 3 rows of a)"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "a.tsv:1: there is no header"),
        ("a.csv", "", "a.csv:1: there is no header"),
        ("a.jsonl", "", "a.jsonl: there are no rows"),
        ("a.tsv", "\ufeff", "a.tsv:1: there is no header"),
        ("a.tsv", "a\tb\n", "a.tsv: there are no rows"),
        ("a.csv", "a,b\n\n\n", "a.csv: there are no rows"),
        ("a.tsv", "a\tb\ta\n1\t2\t3\n", "a.tsv:1: the header has the column 'a' twice"),
        ("a.tsv", "a\tb\n1\t2\n1\t2\t3\n", "a.tsv:3: expected 2 columns, got 3"),
        ("a.tsv", "a\tb\n1\n", "a.tsv:2: expected 2 columns, got 1"),
        ("a.tsv", "a\nx\n\ny\n", "a.tsv:3: expected 1 columns, got 0"),
        ("a.csv", "a,b\n1,2\n\n3,4\n", "a.csv:3: expected 2 columns, got 0"),
        ("a.csv", 'a,b\n"1\n2",3\n4\n', "a.csv:4: expected 2 columns, got 1"),
        ("a.csv", 'a,b\n1,2\n"3,4\n5,6\n', "a.csv:3: broken CSV (unexpected end of data)"),
        ("a.csv", 'a,b\n"1"x,2\n', "a.csv:2: broken CSV"),
        ("a.tsv", b"a\tb\nab\xff\t1\n", "a.tsv:2: byte 0xff at offset 2 of this line is not UTF-8"),
        ("a.tsv", b"\xef\xbb\xbfa\xe4\n", "a.tsv:1: byte 0xe4 at offset 4"),
        ("a.tsv", "a\tb\n".encode("utf-16-le"), "a.tsv:1: a NUL byte"),
        ("a.csv", b"a,b\n1,\x00\n", "a.csv:2: a NUL byte"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "a.jsonl:2: broken JSON at column"),
        ("a.jsonl", '{"a": 1}\n\n{"a": 2}\n', "a.jsonl:2: a blank line"),
        ("a.jsonl", "[1, 2]\n", "a.jsonl:1: this line is a JSON list"),
        ("a.jsonl", '{"a": ' + "9" * 5000 + "}", "a.jsonl:1: JSON that Python does not read"),
        ("a.jsonl", "[" * 200_000, "a.jsonl:1: JSON that Python does not read"),
        ("a.xlsx", "", "a.xlsx: cannot tell the format by the ending; name the file .tsv, .csv, .jsonl"),
    ],
)
def test_faults_say_where_and_what(tmp_path, name, content, message):
    assert fault(write(tmp_path, name, content)).startswith(message)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "text_a\tid\nx\t1\n", "a.tsv:1: the header has no column 'label'; it has 'text_a', 'id'"),
        ("a.jsonl", '{"label": 1}\n{"text": 2}\n', "a.jsonl:2: there is no 'label' in this object; it has 'text'"),
        ("a.jsonl", "{}", "a.jsonl:1: there is no 'label' in this object; it has nothing"),
    ],
)
def test_a_missing_column_names_the_ones_there_are(tmp_path, name, content, message):
    assert fault(write(tmp_path, name, content), ["label"]) == message


def test_missing_file_and_folder(tmp_path):
    assert fault(tmp_path / "none.tsv").startswith("none.tsv: there is no such file; check the path")
    (tmp_path / "folder.tsv").mkdir()
    assert fault(tmp_path / "folder.tsv").startswith("folder.tsv: this is a folder")
    assert "cannot be read (embedded null byte)" in fault(tmp_path / "nul\0.tsv")


@pytest.mark.parametrize(
    ("error", "message"),
    [(PermissionError(13, "Permission denied"), "no permission"), (OSError(5, "Input/output error"), "Input/output")],
)
def test_unreadable_file(tmp_path, error, message):
    path = write(tmp_path, "a.tsv", "a\n1\n")
    with patch.object(Path, "open", side_effect=error):  # the tests may run as root, who may read any file
        assert message in fault(path)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


fragments = st.sampled_from(
    [b"a", b"b", b"\t", b",", b'"', b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", b"{", b"}", b'{"a": 1}', b"[", b":", b"\0"]
)


@settings(max_examples=300)
@given(content=st.binary(max_size=60) | st.lists(fragments, max_size=25).map(b"".join))
@example(content=b'a,b\n"')
@pytest.mark.parametrize("name", ["fuzz.tsv", "fuzz.csv", "fuzz.jsonl"])
def test_any_bytes_end_in_rows_or_a_data_error(scratch, name, content):
    path = write(scratch, name, content)
    try:
        rows = read_rows(path)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - some bytes are right
        return
    assert len(list(rows)) == len(rows) > 0
    assert [rows.line(i) for i in range(len(rows))] == sorted({rows.line(i) for i in range(len(rows))})


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r"), min_size=1)


@given(table=st.lists(st.tuples(cells, cells), min_size=1))
def test_what_is_written_as_tsv_is_read_again(scratch, table):
    text = "a\tb\n" + "".join(f"{a}\t{b}\n" for a, b in table)
    rows = read_rows(write(scratch, "round.tsv", text))
    assert [(row["a"], row["b"]) for row in rows] == table


@pytest.mark.parametrize("name", ONE_ROW)
def test_one_by_one_a_row_comes_before_the_error_of_the_next(tmp_path, name):
    path = write(tmp_path, name, ONE_ROW[name] + ('{"c": 3}\n' if name == "a.jsonl" else "3\n"))
    rows = iter_rows(path, ["a"], ["b", "d"])
    number, row = next(rows)
    assert row == {"a": "1", "b": "2"}
    with pytest.raises(DataError) as caught:
        next(rows)
    assert str(caught.value) == str(path.parent / fault(path, ["a"], ["b", "d"]))
    assert f"{name}:{number + 1}: " in str(caught.value)
    assert list(iter_rows(write(tmp_path, "empty.tsv", "a\tb\n"), ["a"])) == []


def test_the_lines_of_a_plain_text(tmp_path):
    path = write(tmp_path, "a.any", "\ufeffone\r\n\n two\t\u2028\x0c \nthree\r")
    assert list(iter_lines(path)) == [(1, "one"), (2, ""), (3, " two\t\u2028\x0c "), (4, "three")]
    assert list(iter_lines(write(tmp_path, "empty.txt", ""))) == []
    with pytest.raises(DataError, match=r"bad\.txt:2: byte 0xff at offset 1 of this line is not UTF-8"):
        list(iter_lines(write(tmp_path, "bad.txt", b"a\nb\xff\n")))


def test_twenty_thousand_columns_take_no_longer_a_column_than_two(tmp_path, monkeypatch):
    class Name(str):
        """Counts how often it is compared."""

        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.compared += 1
            return str(self) == str(other)

    names = [Name(f"c{number}") for number in range(20_000)]
    assert files._columns_kept(tmp_path, names, ("c7",), ("c19999", "none")) == [7, 19_999]
    assert Name.compared < 100
    with pytest.raises(DataError, match=r"the header has the column 'c5' twice"):
        files._columns_kept(tmp_path, [*names, Name("c5")], (), ())


def test_a_header_is_shown_in_short_and_without_what_a_terminal_obeys(tmp_path):
    header = "\t".join(["\ufeff\ufefftext", "\x1b[2J", *(f"column-{number}" for number in range(20_000))])
    first = r"'\ufefftext', '\x1b[2J', 'column-0'"
    for columns, wrong in ((("text",), ":1: the header has no column 'text'; it has "), ((), "the header has ")):
        told = fault(write(tmp_path, "a.tsv", f"{header}\n1\n"), columns)
        assert f"{wrong}{first}" in told
        assert len(told) < 300
    row = json.dumps({f"column-{number}": 1 for number in range(20_000)})
    assert len(fault(write(tmp_path, "a.jsonl", row), ["text"])) < 300


def test_after_a_file_is_read_the_longest_cell_is_what_it_was(tmp_path):
    path = write(tmp_path, "a.csv", "a,b\n" + "1,2\n" * 5)
    before = csv.field_size_limit()
    rows, others = iter_rows(path), iter_rows(path)
    next(rows), next(others)
    assert csv.field_size_limit() == files.MAX_CELL_LENGTH
    assert len(list(rows)) == 4
    assert csv.field_size_limit() == files.MAX_CELL_LENGTH, "the other one still reads"
    others.close()
    assert csv.field_size_limit() == before
    with pytest.raises(DataError):
        read_rows(write(tmp_path, "b.csv", "a,b\n1\n"))
    assert csv.field_size_limit() == before


def test_cells_of_csv_may_be_long(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n"' + "x" * 200_000 + '",2\n')
    assert len(read_rows(path)[0]["a"]) == 200_000
    gc.collect()  # a reader that another test has left hanging holds the limit up until it is collected
    monkeypatch.setattr(files, "MAX_CELL_LENGTH", 1000)  # and no less than the process allows by itself
    before = csv.field_size_limit(1000)
    try:
        with pytest.raises(DataError, match=r"a\.csv:2: broken CSV \(field larger.*check the quotes of this row"):
            read_rows(path)
    finally:
        csv.field_size_limit(before)
