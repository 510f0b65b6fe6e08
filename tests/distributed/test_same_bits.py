"""Trainings with many pieces come to the same bits in one process and in four; ``make same-bits`` does more."""

import json

import pytest

from scripts.crash_test.differences import differences
from tests.abilities import needs_draws_again
from tests.distributed.catalogue import place
from tests.distributed.launched import launched
from tests.distributed.trainings import PIECES, TRAININGS
from tests.paths import ROOT

pytestmark = [pytest.mark.ranks, needs_draws_again]

SCRIPT = ROOT / "tests" / "distributed" / "catalogue.py"


def run(out, processes):
    """Run all trainings in a folder; return what each rank wrote."""
    done = launched(out, 0 if processes == 1 else processes, SCRIPT, str(out), str(PIECES), *TRAININGS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in range(processes)]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The folders of one process and of four, and what each rank wrote."""
    folders = [tmp_path_factory.mktemp(f"world-{processes}") for processes in (1, 4)]
    return folders, [*run(folders[0], 1), *run(folders[1], 4)]


@pytest.mark.parametrize("name", TRAININGS)
def test_every_rank_ends_with_the_same_bits_and_the_first_leaves_the_same_files(name, worlds):
    (one, four), (alone, *ranks) = worlds
    assert alone[name][0].isdigit(), alone[name]
    assert [rank[name] for rank in ranks] == [alone[name]] * 4
    assert differences(place(four, 0, name), place(one, 0, name)) == []
