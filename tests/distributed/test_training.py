"""Trainings by several processes, through Paddle's launcher: the bits, the resumption, and trouble on one rank."""

import shutil

import numpy as np
import pytest

from onion.checkpointing import checkpoint
from tests.abilities import needs_draws_again
from tests.distributed.launched import ranks

pytestmark = [pytest.mark.ranks, needs_draws_again]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process that runs all pieces."""
    (found,) = ranks(tmp_path_factory.mktemp("alone"), 0)
    return found


def test_two_processes_come_to_the_bits_of_one_that_begins_with_the_weights_of_the_first(alone, tmp_path):
    for found in ranks(tmp_path, 2, trouble="weights"):  # rank 1 has made others
        assert (found["weights"], found["loss"]) == (alone["weights"], alone["loss"])


@pytest.mark.parametrize(("pieces", "dropout"), [(4, 0.4), (0, 0.0)])
def test_the_plain_sum_differs_in_rounding_at_most(pieces, dropout, tmp_path):
    """From one process with the same pieces; and from an ordinary runner, which drops out other values."""
    (one,) = ranks(tmp_path, 0, exact=False, pieces=pieces, dropout=dropout)
    first, second = ranks(tmp_path, 2, exact=False, dropout=dropout)
    assert first["weights"] == second["weights"]
    moved = distance(one["values"], one["begun"])
    assert moved > 0.1
    assert distance(first["values"], one["values"]) < 1e-5 * moved


def distance(one, other):
    """Return the Euclidean distance between weights."""
    return np.linalg.norm(np.subtract(one, other))


def test_a_killed_training_goes_on_with_the_same_bits_in_any_number_of_processes(alone, tmp_path):
    saves = tmp_path / "saves"
    _, killed = ranks(tmp_path, 2, saves=saves, trouble="kill")
    assert killed is None
    assert checkpoint.newest(saves).step == 6
    shutil.copytree(saves, tmp_path / "copied")
    for found in [*ranks(tmp_path, 0, saves=saves), *ranks(tmp_path, 2, saves=tmp_path / "copied")]:
        assert {**found, "rank": 0} == alone


def test_a_signal_to_one_saves_and_ends_all_and_leaves_no_trace(alone, tmp_path):
    saves = tmp_path / "saves"
    for found in ranks(tmp_path, 2, saves=saves, trouble="terminate"):
        assert found["error"] == "SystemExit: 143"
    assert checkpoint.newest(saves).step == 7
    assert ranks(tmp_path, 0, saves=saves)[0] == alone


def test_a_memory_error_on_one_rank_is_split_there_alone(alone, tmp_path):
    first, second = ranks(tmp_path, 2, trouble="memory")
    assert first["weights"] == second["weights"]
    assert (first["step"], first["pass"]) == (alone["step"], 2)


ERRORS = {
    "fail": ("ValueError: trouble", "RankError: rank 1: step 7: ValueError: trouble"),
    "length": ("RankError: rank 1 has another onion", "RankError: rank 1 has another onion"),
}


@pytest.mark.parametrize("trouble", ERRORS)
def test_an_error_of_one_rank_is_told_by_all(trouble, tmp_path):
    first, second = ranks(tmp_path, 2, trouble=trouble)
    mine, theirs = ERRORS[trouble]
    assert second["error"].startswith(mine)
    assert first["error"].startswith(theirs)


def test_data_that_fail_on_one_rank_are_told_by_all_and_cost_no_batch(alone, tmp_path):
    saves = tmp_path / "saves"
    first, second = ranks(tmp_path, 2, trouble="data", saves=saves)
    assert second["error"].startswith("OSError: the disk of this rank is broken")
    assert first["error"].startswith("DataError: the data failed on another rank. rank 1: OSError")
    assert first["step"] == second["step"] == checkpoint.newest(saves).step, "not saved where the data failed"
    assert ranks(tmp_path, 0, saves=saves)[0]["weights"] == alone["weights"]
