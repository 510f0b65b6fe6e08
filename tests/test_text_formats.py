"""Results as JSON and CSV: what a reader gets back."""

import csv
import io
import json

import pytest

from onion.errors import DataError
from onion.text_formats import csv_lines, json_text


def read(rows):
    return list(csv.DictReader(io.StringIO("".join(f"{line}\n" for line in csv_lines(rows)), newline="")))


@pytest.mark.parametrize("text", ["one\ntwo", "one\rtwo", 'a "b", c', "", "中文"])
def test_a_text_comes_back_as_it_was(text):
    assert read([{"index": 0, "text_a": text}]) == [{"index": "0", "text_a": text}]


def test_objects_become_columns_and_lists_json():
    assert read([{"p": {"bad": 0.25, "good": 0.75}, "tags": ["O", "B-地"]}]) == [
        {"p.bad": "0.25", "p.good": "0.75", "tags": '["O", "B-地"]'}
    ]


def test_a_column_that_the_first_row_lacks_is_refused():
    with pytest.raises(DataError, match="row 2 has the column 'b', which the first lacks; write JSON lines"):
        list(csv_lines([{"a": 1}, {"a": 1, "b": 2}]))


def test_what_json_cannot_write_is_null():
    value = {"a": [float("nan"), 1.5, {"b": float("-inf")}], "文": "字"}
    assert json.loads(json_text(value)) == {"a": [None, 1.5, {"b": None}], "文": "字"}
    assert "文" in json_text(value)
