"""A loss scale, and networks of 16 bits, in two processes: what overflows on one rank is skipped by both."""

import numpy as np
import pytest

from tests.abilities import needs_draws_again
from tests.distributed.launched import ranks
from tests.paths import ROOT

pytestmark = [pytest.mark.ranks, needs_draws_again]

SCRIPT = ROOT / "tests" / "distributed" / "scaled.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What came of one process, and of each of two."""
    folder = tmp_path_factory.mktemp("scaled")
    return [*ranks(folder, 0, SCRIPT), *ranks(folder, 2, SCRIPT)]


def test_an_overflow_on_one_rank_is_skipped_by_all_and_leaves_them_the_same_scale(found):
    alone, *both = found
    start = 2.0**100
    assert alone["scales"] == [start, start / 2, start / 2, start / 4, start / 4]
    assert alone["overflows"] == 2
    assert [{**each, "half": alone["half"]} for each in both] == [alone, alone]


def test_a_network_of_16_bits_learns_over_gloo(found):
    for each in found:
        assert np.isfinite(each["half"]).all(), "gloo adds up float16 to infinity"
        assert each["half"] == found[0]["half"]
