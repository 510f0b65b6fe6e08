"""Every onion of the catalogue comes to the same bits in one process and in two, or is refused with the reason."""

import json

import pytest

from scripts.crash_test.differences import differences
from tests.abilities import needs_draws_again
from tests.distributed.catalogue import place
from tests.distributed.launched import launched
from tests.onions import ONIONS
from tests.paths import ROOT

pytestmark = [pytest.mark.ranks, needs_draws_again]

SCRIPT = ROOT / "tests" / "distributed" / "catalogue.py"
LOADER = "a DataLoader makes whole batches"
REFUSED = {
    "data loader": LOADER,
    "data loader with workers": LOADER,
    "data loader of a stream": LOADER,
    "data loader of a task": LOADER,
    "delayed labels": "new batches of the samples whose labels have come",
    "replay buffer": "new batches, with the samples that it keeps",
}
APART = {
    "skipping": "the ranks are out of step",
}
"""What decides by what only a part of the batch shows."""

SEVERAL = {
    "example gan_bert": "fake_generator is outside data_parallel, where it would see the first of 2 pieces",
    "drift": "an item between the data and this one replaced the batch",
}
"""Refused where a rank has several pieces: two updaters, or an updater and a test, see the same altered batch."""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """The folders of one process and of two that ran each onion; both share a batch of two pieces."""
    found = []
    for processes in (1, 2):
        out = tmp_path_factory.mktemp(f"world-{processes}")
        done = launched(out, 0 if processes == 1 else processes, SCRIPT, str(out), "2")
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        found.append(out)
    return found


@pytest.fixture(scope="module")
def outcomes(worlds):
    """What came of each onion on each rank: in one process, and on both ranks of two."""
    ranks = [json.loads((worlds[world] / f"rank-{rank}.json").read_text()) for world, rank in ((0, 0), (1, 0), (1, 1))]
    assert all([*each] == [*ONIONS] for each in ranks), "a rank has not run all"
    return ranks


@pytest.mark.parametrize("name", ONIONS)
def test_one_process_and_two_come_to_the_same_bits(name, worlds, outcomes):
    one, two, other = (each[name] for each in outcomes)
    if name in REFUSED:
        assert REFUSED[name] in one
        assert REFUSED[name] in two
    elif name in APART:
        assert one != two
    elif name in SEVERAL:
        assert SEVERAL[name] in one
        assert two[0].isdigit(), two
        assert other[0].isdigit(), other
    else:
        assert one[0].isdigit(), one
        assert one == two == other
        assert differences(place(worlds[1], 0, name), place(worlds[0], 0, name)) == []
