"""What the service takes."""

import pytest

from onion.errors import OnionError
from onion.online.service import Limits


@pytest.mark.parametrize(
    "wrong", [{"body": 0}, {"connections": 1.5}, {"seconds": -1}, {"keep_alive": float("inf")}, {"samples": True}]
)
def test_a_limit_is_a_number_above_0(wrong):
    with pytest.raises(OnionError, match=next(iter(wrong))):
        Limits(**wrong)


def test_times_may_be_parts_of_a_second():
    assert Limits(seconds=0.1, keep_alive=0.5).seconds == 0.1
