"""What all tests share: a home of their own for what onion keeps on the disk."""

import os
import signal

import hypothesis
import pytest

# One thread in this process, as in the commands that tests start: a product by several threads may have other bits, and
# what a test leaves behind would decide how many the next one has. Read when onion is imported.
os.environ["OMP_NUM_THREADS"] = "1"

import onion  # noqa: F401 - before any test imports Paddle, whose math library it chooses

# The same examples every time (but for constants, which Hypothesis takes from the modules that a worker has loaded),
# however slow the machine: a deadline would be a timed assertion. What is found by chance is looked for with
# --hypothesis-profile=search, which prints what makes a failure come again.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True, max_examples=1000)
hypothesis.settings.load_profile("same")

# Workers of pytest-xdist and a shell's jobs in the background ignore the one, jobs of nohup the other, and what the
# tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


MARKS = {"chromium": "browser", "shared_redis": "redis"}
"""Fixture -> the mark of the tests that use it."""


def pytest_itemcollected(item):
    for fixture in MARKS.keys() & set(item.fixturenames):
        item.add_marker(MARKS[fixture])


@pytest.fixture(scope="session", autouse=True)
def home_of_the_tests(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("ONION_HOME", str(tmp_path_factory.mktemp("home")))
    yield
    patch.undo()


@pytest.fixture
def empty_paddle(tmp_path):
    """Return a folder with a module called paddle that imports at once."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "paddle.py").write_text("")
    return tmp_path / "modules"
