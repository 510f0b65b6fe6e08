"""The confusion matrix, as a table and as a picture that any reader of XML takes."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from onion.svg import WIDEST, width_of
from onion.tasks.reports.matrix import Matrix

SVG = "{http://www.w3.org/2000/svg}"
NEWS = [f"news_{letter}类" for letter in "abcdefghijklmno"]


def texts(svg):
    return [each.text for each in ET.fromstring(svg).iter(f"{SVG}text")]


def test_pairs_are_counted():
    matrix = Matrix.square(["bad", "good"], np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0]))
    assert matrix.sheet().columns == ["label", "bad", "good"]
    assert matrix.sheet().rows == [["bad", 1, 1], ["good", 1, 2]]


@pytest.mark.parametrize("names", [NEWS[:2], NEWS])
def test_the_picture_has_every_label_twice_and_every_count(names):
    counts = np.arange(100, 100 + len(names) ** 2).reshape(len(names), -1)
    counts[1, 0] = 0
    found = texts(Matrix(names, names, counts).picture())
    assert all(found.count(name) == 2 for name in names)
    assert sorted(each for each in found if each.isdecimal()) == [str(each) for each in sorted({*counts.ravel()} - {0})]


def test_right_predictions_and_wrong_ones_have_other_colours_the_larger_share_the_darker():
    root = ET.fromstring(Matrix(["a", "b"], ["a", "b"], np.array([[9, 1], [5, 5]])).picture())
    fills = [each.find(f"{SVG}rect").get("fill") for each in root.iter(f"{SVG}g")]
    (red, green, _), wrong, _, light = [tuple(map(int, fill[4:-1].split(","))) for fill in fills]
    assert green > red
    assert wrong[0] > wrong[1]
    assert light[0] > red
    assert root.find(f".//{SVG}g/{SVG}title").text == "a, predicted a: 9 (90.0%)"


@pytest.mark.parametrize("name", ["<&>\"'", "\x1b[2J\x00", "\ufeff", "x" * 500, "中" * 500, "\u202e"])
def test_labels_may_be_anything(name):
    found = texts(Matrix([name, "b"], [name, "b"], np.eye(2, dtype=np.int64)).picture())
    assert len(found) == 8
    assert all(width_of(each) <= WIDEST + 13 for each in found)


def test_a_thousand_labels_make_no_million_cells():
    names = [str(number) for number in range(1000)]
    numbers = np.arange(1000)
    assert len(Matrix.square(names, numbers, numbers[::-1]).picture()) < 1_000_000
