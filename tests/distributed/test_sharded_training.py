"""Trainings whose ranks share the optimizer's state: its memory, the bits, and checkpoints that any number loads."""

import pytest

from onion.checkpointing import checkpoint
from tests.abilities import needs_draws_again
from tests.distributed.launched import ranks

pytestmark = [pytest.mark.ranks, needs_draws_again]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process that keeps all."""
    (found,) = ranks(tmp_path_factory.mktemp("alone"), 0)
    return found


def without_memory(found):
    return {**found, "rank": 0, "kept": None}


def test_each_rank_keeps_its_share_and_the_bits_are_those_of_one(alone, tmp_path):
    found = ranks(tmp_path, 4, shard=True)
    assert [without_memory(each) for each in found] == [without_memory(alone)] * 4
    kept = [each["kept"] for each in found]
    assert sum(kept) == alone["kept"]
    assert max(kept) < 0.55 * alone["kept"]  # the largest parameter, of 48 among 103 values, is one rank's


def test_checkpoints_go_on_in_any_number_of_processes_that_share_or_do_not(alone, tmp_path):
    saves = tmp_path / "saves"
    ranks(tmp_path, 0, saves=saves, trouble="terminate", rank=0, step=2)
    for found in ranks(tmp_path, 2, saves=saves, shard=True, trouble="terminate", step=5):
        assert found["error"] == "SystemExit: 143"
    assert checkpoint.newest(saves).step == 5
    assert ranks(tmp_path, 4, saves=saves, shard=True, trouble="kill", step=10)[1] is None
    assert checkpoint.newest(saves).step == 9
    assert ranks(tmp_path, 0, saves=saves)[0] == alone


def test_a_checkpoint_that_the_first_alone_could_not_write_is_gathered_from_all_once_more(tmp_path):
    saves = tmp_path / "saves"
    found = ranks(tmp_path, 2, saves=saves, shard=True, trouble="blocked", rank=0, step=15, passes=3)
    assert [each.get("error") for each in found] == [None, None]
    assert checkpoint.newest(saves).step == 15
