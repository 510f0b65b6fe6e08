import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.data.rows import Row, file_rows, line_rows
from tests.tasks.helpers import write_jsonl, write_tsv


def row(**cells):
    return Row("a.tsv", 7, cells)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (5, "c is 5, not a string; put it in quotes"),
        (None, r"c is empty \(null\); fill it in or remove the row"),
        (["x"], r"c is \['x'\], not a string"),
        ("a\ud83d", "c has an unpaired surrogate"),
        ("\udc00", "c has an unpaired surrogate"),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(value, what):
    with pytest.raises(DataError, match=rf"^a\.tsv:7: {what}"):
        row(c=value).text("c")
    assert row(c="whole \U0001f600").text("c") == "whole \U0001f600"


@pytest.mark.parametrize(
    ("value", "word"), [("good", "good"), (2, "2"), (2.0, "2"), (1.5, "1.5"), ("2.0", "2.0"), ("", "")]
)
def test_words_are_texts_or_numbers(value, word):
    assert row(c=value).word("c") == word


@pytest.mark.parametrize("value", [True, [1], {"a": 1}])
def test_other_values_are_no_words(value):
    with pytest.raises(DataError, match=r"a\.tsv:7: c is .*, not a string"):
        row(c=value).word("c")


@pytest.mark.parametrize(("value", "label"), [("good", "good"), (" a b\u3000\n", "a b"), (2, "2"), (1.5, "1.5")])
def test_white_space_around_a_label_is_no_part_of_it(value, label):
    assert row(c=value).label("c") == label


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("", "c is empty; fill it in or remove the row"),
        (" \t", "c is empty"),
        (None, r"c is empty \(null\)"),
        (float("nan"), "c is nan, which is not a JSON number"),
    ],
)
def test_what_is_no_label_is_refused(value, what):
    with pytest.raises(DataError, match=rf"a\.tsv:7: {what}"):
        row(c=value).label("c")


@pytest.mark.parametrize(("value", "number"), [("1.5", 1.5), (2, 2.0), ("-1e3", -1000.0), (" 4 ", 4.0)])
def test_numbers(value, number):
    assert row(c=value).number("c") == number


@pytest.mark.parametrize("value", ["", "one", "nan", "inf", "1,5", "0x1", "1_000", "9" * 400 + "e999"])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(DataError, match=r"a\.tsv:7: c is '.*', not a number"):
        row(c=value).number("c")


def test_rows_of_a_file_know_their_lines(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("x", "good", "a"), ("y", "bad", "b")], ("other", "label", "text_a"))
    found = list(file_rows(path, ["text_a"], ["text_b", "label"]))
    assert [(each.line, dict(each.cells)) for each in found] == [
        (2, {"text_a": "a", "label": "good"}),
        (3, {"text_a": "b", "label": "bad"}),
    ]
    assert str(found[1].error("wrong; mend it")) == f"{path}:3: wrong; mend it"


def test_rows_are_read_one_at_a_time(tmp_path):
    data = tmp_path / "a.tsv"
    data.write_text("text_a\nfilm\n" + "plot\n" * 100_000 + "one\ttoo many\n")
    rows = file_rows(data, ["text_a"])
    assert next(rows).cells == {"text_a": "film"}  # the mistake at the end was not read yet
    with pytest.raises(DataError, match=r"a\.tsv:100003: expected 1 columns, got 2"):
        list(rows)


def cells(lines, *columns, optional=()):
    return [dict(each.cells) for each in line_rows(lines, columns, optional)]


def test_lines_of_plain_text_tabs_and_json():
    assert cells(["a film\n", "\r\n", "x"], "text_a") == [{"text_a": "a film"}, {"text_a": ""}, {"text_a": "x"}]
    assert cells(["a\tb\n"], "text_a", "text_b") == [{"text_a": "a", "text_b": "b"}]
    assert cells(["a\n", "a\tq"], "text_a", optional=["qid"]) == [{"text_a": "a"}, {"text_a": "a", "qid": "q"}]
    assert cells(['{"text_a": "a\\tb", "more": 1}\n'], "text_a") == [{"text_a": "a\tb", "more": 1}]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("a\tb", "2 tab-separated cells; this model reads text_a"),
        ("{a film}", "starts with '{' but is not a JSON object"),
        ('{"text": "a"}', "there is no 'text_a' in this object; it has 'text'"),
        ("{}", "there is no 'text_a' in this object; it has nothing"),
        ("{" * 10_000, "not a JSON object"),
    ],
)
def test_lines_that_do_not_do(line, what):
    with pytest.raises(DataError, match=r"^standard input:2: ") as caught:
        cells(["fine", line], "text_a")
    assert what in str(caught.value)


def test_a_line_is_read_when_its_turn_comes():
    asked = []

    def lines():
        for line in "abc":
            asked.append(line)
            yield line

    rows = line_rows(lines(), ["text_a"])
    next(rows)
    assert asked == ["a"]


@given(st.text())
def test_any_line_gives_a_row_or_an_error_with_its_place(line):
    if line.startswith("{") or line.count("\t") > 1:
        with pytest.raises(DataError, match=r"^standard input:1: "):
            list(line_rows([line], ["text_a"], ["text_b"]))
        return
    (found,) = line_rows([line], ["text_a"], ["text_b"])
    assert "\t".join(found.cells.values()) == line.rstrip("\r\n")


@pytest.mark.parametrize("noted", [3, "x", ["a.tsv"], None])
def test_a_column_of_the_name_of_the_note_is_no_place(tmp_path, noted):
    path = write_jsonl(tmp_path / "a.jsonl", {"text_a": "a film", "@at": noted})
    assert [(row.path, row.line) for row in file_rows(path, ["text_a"])] == [(path, 1)]


def test_a_column_missing_after_conversion_is_told_where_it_came_from(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", {"text_a": "a film", "@at": ["mine.csv", 7]})
    with pytest.raises(DataError, match=r"^mine.csv:7: there is no 'label' in this object; .* --columns label=NAME$"):
        list(file_rows(path, ["text_a", "label"]))


@pytest.mark.parametrize("content", ["sentence\tlabel\na\t1\n", "text_a\tSentiment\na\t1\n"])
def test_a_missing_column_of_a_task_is_told_with_the_flag_that_names_it(content, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(content)
    missing = "text_a" if "sentence" in content else "label"
    told = rf"a\.tsv:1: the header has no column '{missing}'; it has .*: --columns {missing}=NAME$"
    with pytest.raises(DataError, match=told):
        list(file_rows(path, ("text_a", "label")))
