"""The pins of ``make test-min-deps``: of every dependency the lowest version that setup.cfg admits."""

import re

import pytest

from scripts.min_deps import lowest
from tests.paths import ROOT

SETTINGS = """
[options]
install_requires =
    numpy>=1.24
    attrs>=22.2
[options.extras_require]
gpu =
    paddle-gpu>=2
# a comment
cpu =
    paddle>=2
    numpy>=1.24
"""


def test_each_dependency_once_and_no_gpu():
    assert lowest(SETTINGS) == ["attrs==22.2", "numpy==1.24", "paddle==2"]
    assert lowest(SETTINGS, ["paddle==3.1"]) == ["attrs==22.2", "numpy==1.24", "paddle==3.1"]
    pins = lowest((ROOT / "setup.cfg").read_text())
    assert "paddlepaddle==2.6.2" in pins
    assert not [pin for pin in pins if "gpu" in pin]


@pytest.mark.parametrize("line", ["attrs", "attrs==22.2", "attrs>=22.2,<23", "attrs>22", "attrs >= 22.2"])
def test_what_has_no_lower_bound_is_refused(line):
    with pytest.raises(SystemExit, match=re.escape(f"{line!r} is not name>=version")):
        lowest(SETTINGS.replace("attrs>=22.2", line))


def test_two_bounds_that_differ_and_pins_of_something_else_are_refused():
    with pytest.raises(SystemExit, match="numpy has two lower bounds"):
        lowest(SETTINGS.replace("numpy>=1.24", "numpy>=1.25", 1))
    with pytest.raises(SystemExit, match=r"torch==1: setup\.cfg does not depend on it"):
        lowest(SETTINGS, ["torch==1"])
