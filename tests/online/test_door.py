"""onion.online: its names."""

import pytest

from onion import online


@pytest.mark.parametrize("name", online.__all__)
def test_each_name_is_there(name):
    assert getattr(online, name).__name__ == name


def test_no_other_name_is_there():
    with pytest.raises(AttributeError, match="no attribute 'Pipe'"):
        online.Pipe  # noqa: B018
