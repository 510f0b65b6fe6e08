"""What learns online and cannot be shared by processes says so, with what to do instead."""

import pytest

from onion import DataProvider, GradientMachine, Runner
from onion.distributed import DataParallel, ProcessGroup
from onion.errors import CompositionError
from onion.online.learning.drift import DriftDetector
from onion.online.learning.progressive_validation import DelayedLabels
from onion.online.learning.replay_buffer import ReplayBuffer
from onion.testing import toy_examples, toy_network
from tests.onions.parts import adamw


def shared(network, *items, inside=()):
    data = DataProvider(toy_examples(8), 4)
    learning = [adamw(network), DataParallel(), *inside, GradientMachine(network)]
    return Runner(ProcessGroup(pieces=2), data, *items, *learning)


@pytest.mark.parametrize(
    ("item", "instead"),
    [
        (DelayedLabels, "join samples and labels before they reach the source, or run it in one process"),
        (lambda network: ReplayBuffer(9), "send old samples through the source once more, or run it in one process"),
    ],
)
def test_batches_of_kept_samples_are_not_cut_into_pieces(item, instead):
    network = toy_network()
    with pytest.raises(CompositionError, match=f"cannot be run by several processes: it makes new batches.*{instead}"):
        shared(network, item(network))


def test_drift_is_looked_for_once_a_batch():
    pytest.importorskip("river")
    network, watch = toy_network(), DriftDetector(print)
    assert watch in shared(network, watch).walk()
    with pytest.raises(CompositionError, match="is inside data_parallel, which runs its inside for each piece"):
        shared(network, inside=[DriftDetector(print)])
