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
    "delayed labels": "new batches of the samples whose labels have come",
    "replay buffer": "new batches, with the samples that it keeps",
}
APART = {
    "skipping": "the ranks are out of step",
}
"""What decides by what only a part of the batch shows."""

WHOLE = "replaced the batch, and this rank has several pieces of it"


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
    elif WHOLE in one:  # an item that replaces batches; two processes have a piece each
        assert two[0].isdigit(), two
    else:
        assert one == two
        assert one[0].isdigit(), one
