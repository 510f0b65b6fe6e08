"""A short ``make interrupt``; and that it cannot miss what is torn, refused or other."""

import re
import subprocess
import sys

import pytest

from tests.abilities import needs_draws_again
from tests.paths import ROOT

pytestmark = pytest.mark.slow


def interrupt(*words):
    """Run scripts.interrupt; return its exit status and what it printed."""
    command = [sys.executable, "-m", "scripts.interrupt", *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def figures(printed, row):
    """What the table says of a row: tries, interrupts, torn, refused, other bits."""
    return tuple(map(int, re.search(rf"^{row} +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", printed, re.MULTILINE).groups()))


@needs_draws_again
def test_runs_that_are_interrupted_while_they_save_go_on_to_the_same_bits():
    status, printed = interrupt("--onion", "best", "--count", "16", "--seed", "6")
    assert status == 0, printed
    for row in ("foreground +operation", "foreground +line", "background +operation", "background +line"):
        tries, interrupts, *wrong = figures(printed, row)
        assert (tries, wrong) == (4, [0, 0, 0])
        assert interrupts >= 3


@pytest.mark.parametrize(
    ("onion", "told", "column"),
    [
        ("torn", r"torn: .*manifest.json is missing or damaged", 2),
        ("broken", r"RuntimeError: cannot go on", 3),
        ("drawn once", r"drawn_once place: 4 of 4 elements differ", 4),
    ],
)
def test_what_is_wrong_is_told_and_counted(onion, told, column):
    status, printed = interrupt("--onions", "tests.broken_onions", "--onion", onion, "--count", "4", "--seed", "7")
    assert status == 1
    assert re.search(rf"^\d+ {onion}, \w+, before each \w+ drawn: .*{told}", printed, re.MULTILINE), printed
    assert figures(printed, "all")[column] >= 1
