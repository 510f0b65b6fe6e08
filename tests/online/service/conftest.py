"""A service with a desk in memory behind it."""

import pytest

from tests.online.service.memory_desk import serving


@pytest.fixture
def served():
    with serving() as (desk, service):
        yield desk, service


@pytest.fixture(scope="module")
def shared():
    """For the tests that leave nothing behind in the desk."""
    with serving() as (desk, service):
        yield desk, service
