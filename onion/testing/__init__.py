"""Tools for testing your own items: record hooks, fail on purpose, check resumption; and toy data and networks.

A test puts recorders around and inside the item:

    trace = []
    Runner(Recorder("a", trace), Batches(3), MyItem(), Recorder("b", trace)).run(passes=1)
    assert trace[:2] == ["a.initialize:in", "b.initialize:in"]

and checks that a run with the item loses nothing when it is killed:

    def test_a_run_with_my_item_resumes_exactly(tmp_path):
        assert_resumes_exactly(my_runner, tmp_path, passes=2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onion.lazy import lazily
from onion.testing.recorder import Failing, PlannedError, Recorder
from onion.testing.toys import Batches, toy_examples, toy_network

if TYPE_CHECKING:
    from onion.testing.resumption import assert_resumes_exactly

__all__ = ["Batches", "Failing", "PlannedError", "Recorder", "assert_resumes_exactly", "toy_examples", "toy_network"]


# It imports numpy and the items, which the rest of this package does not need.
__getattr__ = lazily(__name__, {"assert_resumes_exactly": "resumption"})
