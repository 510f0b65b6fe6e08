import numpy as np
import pytest

from onion import Runner, RunnerItem
from onion.tasks.collector import Collector, Decoder
from onion.testing import Batches


class Double(RunnerItem):
    def on_batch(self, state):
        state.outputs = np.array([[2.0 * row, 0.0] for row in state.batch["places"]])


def batches(*places):
    return Batches([{"places": each} for each in places])


def test_outputs_stand_in_the_order_of_the_file():
    collector = Collector(5)
    Runner(batches([3, 0], [4], [1, 2]), collector, Double()).run(passes=1)
    assert [output.tolist() for output in collector.found] == [[2.0 * row, 0.0] for row in range(5)]


def test_as_many_outputs_as_examples():
    class Short(RunnerItem):
        def on_batch(self, state):
            state.outputs = np.zeros((1, 2))

    with pytest.raises(ValueError, match="shorter"):
        Runner(batches([0, 1]), Collector(2), Short()).run(passes=1)


def test_the_decoder_hands_on_what_the_network_makes_of_its_outputs():
    class Network:
        def decode(self, outputs, batch):
            return [f"{place}: {number}" for place, (number, _) in zip(batch["places"], outputs, strict=True)]

    collector = Collector(3)
    Runner(batches([1], [2, 0]), collector, Decoder(Network()), Double()).run(passes=1)
    assert collector.found == ["0: 0.0", "1: 2.0", "2: 4.0"]
