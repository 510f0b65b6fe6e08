"""What all tests share: a home of their own for what onion keeps on the disk."""

import pytest

import onion  # noqa: F401 - before any test imports Paddle, whose math library it chooses


@pytest.fixture(scope="session", autouse=True)
def home_of_the_tests(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("ONION_HOME", str(tmp_path_factory.mktemp("home")))
    yield
    patch.undo()
