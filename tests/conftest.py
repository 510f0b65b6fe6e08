"""What all tests share: a home of their own for what onion keeps on the disk."""

import hypothesis
import pytest

import onion  # noqa: F401 - before any test imports Paddle, whose math library it chooses

# The same examples every time, however slow the machine: a deadline would be a timed assertion. What is found by chance
# is looked for with --hypothesis-profile=search, which prints what makes a failure come again.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True, max_examples=1000)
hypothesis.settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def home_of_the_tests(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("ONION_HOME", str(tmp_path_factory.mktemp("home")))
    yield
    patch.undo()
