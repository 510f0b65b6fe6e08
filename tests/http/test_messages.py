"""Strict JSON."""

import json
import math
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.http.messages import HIGH, LOW, MAX_DEPTH, JsonError, dumps, lines, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(LOW, HIGH) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_can_be_read(value):
    assert loads(dumps(value)) == value


@given(VALUES)
def test_what_other_writers_write_can_be_read(value):
    assert loads(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@given(st.binary(max_size=200) | st.text(alphabet='[]{}"\\,:0123456789.eE+-nulltrueNaIfy \n', max_size=200))
def test_anything_is_json_or_a_json_error(text):
    raw = text if isinstance(text, bytes) else text.encode()
    with suppress(JsonError):
        assert dumps(loads(raw)) == json.dumps(json.loads(raw), separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "text",
    [
        *("", "NaN", "-Infinity", "1e999", "-1e999", "9" * 5000, "1 2", "\ufeff1", "'a'", "[1,]"),
        *(str(HIGH + 1), str(LOW - 1), '{"a": 1, "a": 2}', r'"\ud800"', r'{"\uDFFF": 1}'),
        *("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "[" * 100_000, '{"a":' * 100_000),
        '["' + "[" * 100 + '\\"", ' + "[" * 100,
    ],
)
def test_refused(text):
    with pytest.raises(JsonError):
        loads(text.encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (str(HIGH), HIGH),
        (str(LOW), LOW),
        ("1" + "0" * 300 + ".5", 1e300),
        (r'"\ud83d\ude00"', "😀"),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)),
        ('"' + "[{" * 500 + '\\"[["', "[{" * 500 + '"[['),  # brackets in a string are no lists
        ("[" + "[]," * 500 + "[]]", [[]] * 501),
    ],
)
def test_accepted(text, value):
    assert loads(text.encode()) == value


def test_hostile_text_takes_linear_time():
    texts = ['["' + '\\"' * 300_000 + "[" * 100, '"' * 400_000 + "[" * 100, "9" * 1_000_000, "[" * 1_000_000]
    for text in texts:
        began = time.thread_time()
        with pytest.raises(JsonError):
            loads(text.encode())
        assert time.thread_time() - began < 60  # it takes milliseconds, and would take minutes if it were quadratic


def test_what_json_does_not_have_is_null():
    assert dumps({"a": [math.nan, -math.inf, 1.5], "b": (math.inf,)}) == b'{"a":[null,null,1.5],"b":[null]}'


def test_lines():
    assert list(lines(b"\n1\r\n\n  2\n3 ")) == [(2, b"1"), (4, b"2"), (5, b"3")]
