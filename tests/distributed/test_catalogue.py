"""Every onion of the catalogue comes to the same bits in one process and in two, or is refused with the reason."""

import json

import pytest

from tests.abilities import needs_draws_again
from tests.distributed.catalogue import RUN
from tests.distributed.launched import launched
from tests.paths import ROOT

pytestmark = [pytest.mark.ranks, needs_draws_again]

SCRIPT = ROOT / "tests" / "distributed" / "catalogue.py"
LOADER = "a DataLoader makes whole batches"
REFUSED = {
    "data loader": LOADER,
    "data loader with workers": LOADER,
    "data loader of a stream": LOADER,
    "data loader of a task": LOADER,
    "delayed labels": "its samples wait for their labels in one process",
    "replay buffer": "it keeps the samples of one process",
    "drift": "cannot be run by several processes",
}
APART = {
    "skipping": "the ranks are out of step",
    "drawn": "draws random numbers while it reads",
    "worker processes": "draws random numbers while it reads",
}
"""What decides, or draws, by what only a part of the batch shows."""

SEVERAL = {"example gan_bert": "fake_generator is outside data_parallel, where it would see the first of 2 pieces"}
"""Refused where a rank has several pieces: two updaters learn from the same altered batch."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of each onion in one process and in two; both share a batch of two pieces."""
    found = []
    for processes in (1, 2):
        out = tmp_path_factory.mktemp(f"world-{processes}")
        done = launched(out, 0 if processes == 1 else processes, SCRIPT, str(out), "2")
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        ranks = [json.loads((out / f"rank-{rank}.json").read_text()) for rank in range(processes)]
        assert all([*each] == RUN for each in ranks), "a rank has not run all"
        found.append(ranks[0])
    return found


@pytest.mark.parametrize("name", RUN)
def test_one_process_and_two_come_to_the_same_bits(name, outcomes):
    one, two = (each[name] for each in outcomes)
    if name in REFUSED:
        assert REFUSED[name] in one
        assert REFUSED[name] in two
    elif name in APART:
        assert one != two
    elif name in SEVERAL:
        assert SEVERAL[name] in one
        assert two[0].isdigit(), two
    else:
        assert one == two
        assert one[0].isdigit(), one
