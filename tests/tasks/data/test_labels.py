import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.tasks.data.labels import Labels, apart, as_labels


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["b", "a", "b", "C"], ("C", "a", "b")),
        (["10", "9", "2", "10"], ("2", "9", "10")),
        (["1", "-1", "0", "-10"], ("-10", "-1", "0", "1")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["1", "01", "2"], ("01", "1", "2")),  # one number, but two labels
        (["1.5", "1.25", "10"], ("1.25", "1.5", "10")),
        (["", " ", "a b"], ("", " ", "a b")),
        (["положительный", "中立", "négatif"], ("négatif", "положительный", "中立")),
        (["٣", "2"], ("2", "٣")),  # digits, but not ours
        (["--1", "-"], ("-", "--1")),
        (["9" * 5000, "1"], ("1", "9" * 5000)),  # more digits than Python makes a number of
    ],
)
def test_order(values, names):
    assert Labels.of(values).names == names


@given(st.lists(st.text(max_size=4)))
def test_every_label_has_a_number_of_its_own_and_the_order_of_the_rows_does_not_matter(values):
    labels = Labels.of(values)
    assert labels == Labels.of(reversed(values))
    assert set(labels.names) == set(values)
    assert len(labels) == len(set(values))
    assert labels.numbers() == {name: labels.names.index(name) for name in values}


def test_names_keep_the_order_they_are_given_in():
    labels = as_labels(["b", "a"])
    assert as_labels(labels) is labels
    assert (list(labels), labels.told(), "a" in labels, "c" in labels) == (["b", "a"], "'b', 'a'", True, False)
    assert as_labels([1, 0, -1, "a"]).names == ("1", "0", "-1", "a")


MANY = [f"label {number}" for number in range(500)]


@pytest.mark.parametrize(
    ("there", "here", "told"),
    [
        (5e-05, 1.0, "5e-05 there, 1.0 here"),
        (["a"], ["b", "c"], "['a'] there, ['b', 'c'] here"),
        (["x" * 99], None, f"['{'x' * 37}...'] there, None here"),
        (
            MANY,
            [*MANY[:300], "other", *MANY[301:]],
            "500 there, 500 here, and number 301 is 'label 300' there, 'other' here",
        ),
        (MANY, MANY[:499], "500 there, 499 here, and number 500 is 'label 499' there, missing here"),
    ],
)
def test_what_differs_is_told_in_a_line(there, here, told):
    assert apart(there, here) == told
