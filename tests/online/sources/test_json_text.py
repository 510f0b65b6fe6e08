"""Samples as lines of JSON."""

import math

import pytest

from onion.errors import DataError
from onion.online.sources.json_text import texts_of, value_of


@pytest.mark.parametrize(
    "value", [{"a": [1, 2.5, None, True]}, "旅馆 很好\n\0", "half \ud800 a pair", -(2**70), "", [], {}]
)
def test_what_goes_in_comes_out(value):
    (text,) = texts_of([value])
    assert value_of(text.encode().decode(), "here") == value
    assert "\n" not in text


def test_text_stays_readable():
    assert texts_of(["旅"]) == ['"旅"']


@pytest.mark.parametrize("wrong", [math.nan, math.inf, {1, 2}, b"bytes", object()])
def test_what_is_not_json_is_refused_by_its_number(wrong):
    with pytest.raises(DataError, match=r"sample 2 of this write is no JSON value \(.*Nothing was taken"):
        texts_of([1, wrong])


def test_depth_without_end_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DataError, match="sample 1"):
        texts_of([deep])


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000])
def test_a_damaged_text_is_told_with_its_place(text):
    with pytest.raises(DataError, match="here: what is kept there is not JSON"):
        value_of(text, "here")
