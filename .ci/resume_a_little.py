"""Train, be cut, resume, and compare the bits with a run that was not cut: what onion promises for Paddle 2.6 too.

Without dropout: on the CPU of Paddle 2.6 the place among the random numbers cannot be read
(onion/checkpointing/rng.py).
"""

import random
import tempfile
from pathlib import Path

import numpy as np

from onion import DataProvider, GradientMachine, MovingAverage, ParameterUpdater, Runner, Saver
from onion.testing import toy_examples, toy_network

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

STEPS, CUT = 21, 8  # eight batches a pass: the cut is on a border, the end in the middle of a pass


def trained(folder: Path, *stops: int) -> dict[str, np.ndarray]:
    """Train in one folder, each time from new objects, up to each of these steps; return all that was learned."""
    for stop in stops:
        random.seed(0)
        np.random.seed(0)
        network = toy_network()
        schedule = paddle.optimizer.lr.PolynomialDecay(learning_rate=0.05, decay_steps=STEPS)
        optimizer = paddle.optimizer.AdamW(learning_rate=schedule, parameters=network.parameters())
        average = MovingAverage(network, decay=0.9)
        updater, machine = ParameterUpdater(optimizer), GradientMachine(network)
        data = DataProvider(toy_examples(256), batch_size=32, shuffle=True)
        state = Runner(Saver(folder, every=3), data, average, updater, machine).run(steps=stop)
        assert state.step == stop, (state.step, stop)
    learned = {item.name: item.state_dict() for item in (machine, updater, average)}
    return {f"{name}: {key}": np.asarray(value) for name, saved in learned.items() for key, value in saved.items()}


with tempfile.TemporaryDirectory() as room:
    whole = trained(Path(room) / "whole", STEPS)
    cut = trained(Path(room) / "cut", CUT, CUT + 5, STEPS)
assert whole.keys() == cut.keys()
different = [name for name in whole if whole[name].tobytes() != cut[name].tobytes()]
assert not different, different
versions = f"Paddle {paddle.__version__}, numpy {np.__version__}"
print(f"{versions}: cut twice and resumed, {len(whole)} values the same to the bit")
