"""A service with a run in memory behind it."""

import pytest

from tests.online.http.memory_run import serving


@pytest.fixture(autouse=True)
def _no_token(monkeypatch):
    monkeypatch.delenv("ONION_TOKEN", raising=False)


@pytest.fixture
def served():
    with serving() as (run, service):
        yield run, service


@pytest.fixture(scope="module")
def shared():
    """For the tests that leave nothing behind in the run."""
    with serving() as (run, service):
        yield run, service
