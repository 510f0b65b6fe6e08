"""What several processes cost a run in one: nothing without the items, and with them a ring that only yields."""

import subprocess
import sys

from onion import DataProvider, GradientMachine, Runner
from onion.distributed import distributed
from onion.testing import toy_examples, toy_network
from tests.counting import calls_in
from tests.onions.parts import adamw
from tests.paths import ROOT

PLAIN = """
import sys
import paddle
from onion import DataProvider, GradientMachine, ParameterUpdater, Runner
from onion.testing import toy_examples, toy_network
network = toy_network()
updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
Runner(DataProvider(toy_examples(8), 4), updater, GradientMachine(network)).run(passes=1)
print([name for name in sys.modules if name.startswith("onion.distributed")])
"""


def runner(batches):
    network = toy_network()
    return Runner(DataProvider(toy_examples(4 * batches), 4), adamw(network), GradientMachine(network))


def calls(batches, made=lambda each: each):
    """Count the calls of functions of onion.distributed in a run."""
    prepared = made(runner(batches))
    return calls_in(ROOT / "onion" / "distributed", lambda: prepared.run(passes=1))


def test_a_run_without_the_items_calls_nothing_of_them():
    assert not calls(3)


def test_a_run_without_the_items_does_not_import_them():
    done = subprocess.run([sys.executable, "-c", PLAIN], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_in_one_process_a_batch_enters_and_leaves_one_ring_more():
    few, many = calls(2, distributed), calls(12, distributed)
    assert many - few == {"on_batch": 2 * 10}
