"""docs/guards.md: every row of what is guarded names a test that is there."""

import ast
import re

import pytest

from tests.paths import ROOT

GUARDED = (ROOT / "docs" / "guards.md").read_text(encoding="utf-8").partition("## Not prevented")[0]
ROWS = re.findall(r"^\| (?!what would|---)(.*) \|$", GUARDED, re.MULTILINE)
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", GUARDED)


def test_every_row_says_what_shows_it():
    assert len(ROWS) >= 10
    assert [row for row in ROWS if "`tests/" not in row and "the same test" not in row] == []


@pytest.mark.parametrize(("path", "name"), TESTS, ids=[name for _, name in TESTS])
def test_the_test_is_there(path, name):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
