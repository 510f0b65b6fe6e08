import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.messages import LONGEST, listed, printable, shown


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("good", "'good'"),
        ("\ufeffname", r"'\ufeffname'"),
        ("\x1b[2Jgone", r"'\x1b[2Jgone'"),
        ("a\u2028b\n", r"'a\u2028b\n'"),
        ("中文", "'中文'"),
        ("x" * 40, f"'{'x' * 40}'"),
        ("x" * 41, f"'{'x' * 37}...'"),
        (None, "None"),
        (float("nan"), "nan"),
        (["\x1b"], r"['\x1b']"),
    ],
)
def test_a_value_as_a_message_has_it(value, told):
    assert shown(value) == told


def test_values_that_are_too_large_to_be_shown():
    assert shown(10**5000) == "a int that is too large to be shown"
    value = []
    for _ in range(200_000):
        value = [value]
    assert shown(value) == "a list that is too large to be shown"
    while value:  # or it would be taken apart by as many calls
        value = value[0]


def test_many_values_and_lines():
    assert listed([]) == "nothing"
    assert listed(iter("ab")) == "'a', 'b'"
    assert listed(range(10)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert listed(range(11)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..."
    assert printable("one\n\ttwo\r\x9b\u202e") == "one\n\ttwo\\r\\x9b\\u202e"


@given(st.text(), st.lists(st.text(max_size=99), max_size=30))
def test_messages_are_bounded_and_hold_nothing_that_cannot_be_seen(text, texts):
    assert printable(text).replace("\n", "").replace("\t", "").isprintable()
    assert shown(text).isprintable()
    assert len(shown(text)) <= 10 * LONGEST + 2  # an escape takes ten characters
    assert listed(texts).isprintable()
