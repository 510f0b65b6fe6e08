"""Predictions as CSV: what a reader of CSV gets back."""

import csv
import io

import pytest

from onion.cli.csv_lines import csv_lines
from onion.errors import DataError


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
