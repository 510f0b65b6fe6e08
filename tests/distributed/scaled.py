"""A script for a launcher: train with a loss scale while one piece overflows, and train a network of 16 bits.

python -m paddle.distributed.launch --nproc_per_node 2 tests/distributed/scaled.py '{"out": ...}'

Rank R writes OUT/rank-R.json: the loss scale after each step, the overflows, a digest of the weights; the weights of
the network of 16 bits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from onion import DataProvider, GradientMachine, MixedPrecision, ParameterUpdater, Runner, RunnerItem
from onion.distributed import distributed
from onion.host import launch
from onion.testing import toy_examples
from onion.training.loss_scale import LossScale
from tests.distributed.job import digest
from tests.onions.parts import Network, adamw, seed

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

EXAMPLES = toy_examples(40)  # batches of 8, of which the second rank has the second half
EXAMPLES[13] = {**EXAMPLES[13], "y": EXAMPLES[13]["y"] * float("nan")}
EXAMPLES[30] = {**EXAMPLES[30], "y": EXAMPLES[30]["y"] * 0 + 1e12}  # too large for the scale alone


class Scales(RunnerItem):
    """Keep the loss scale after each step."""

    def __init__(self, mixed: MixedPrecision) -> None:
        self.mixed = mixed
        self.seen: list[float] = []

    def on_batch(self, state):
        yield
        self.seen.append(self.mixed.scale.value)


class Half(paddle.nn.Layer):
    """``[n, 8] -> [n, 1]``, by a matrix of 16 bits."""

    def __init__(self):
        super().__init__()
        self.matrix = self.create_parameter([8, 1], dtype="float16")

    def forward(self, batch):
        return batch["x"] @ self.matrix.astype("float32")

    def loss(self, outputs, batch):
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


class Descent:
    """An optimizer of float16, for which Paddle's have none on the CPU."""

    def __init__(self, parameters):
        self._parameter_list = parameters

    def step(self):
        for each in self._parameter_list:
            assert each.grad.dtype == each.dtype
            each.set_value((each.astype("float32") - 0.1 * each.grad.astype("float32")).astype(each.dtype))

    def clear_grad(self, set_to_zero=True):
        for each in self._parameter_list:
            each.clear_gradient(False)


def main(out):
    """Train both, and write down what came of it."""
    seed(5)
    network = Network()
    mixed = MixedPrecision("float16", scale=LossScale(2.0**100, growth_interval=2))
    scales = Scales(mixed)
    items = [scales, DataProvider(EXAMPLES, 8), adamw(network), mixed, GradientMachine(network)]
    distributed(Runner(*items), pieces=2, exact=True).run(passes=1)
    half = Half()
    items = [DataProvider(toy_examples(40), 8), ParameterUpdater(Descent(half.parameters())), GradientMachine(half)]
    distributed(Runner(*items), pieces=2).run(passes=1)
    found = {"scales": scales.seen, "overflows": mixed.overflows, "weights": digest(network)}
    found["half"] = half.matrix.astype("float32").numpy().reshape(-1).tolist()
    (Path(out) / f"rank-{launch.rank()}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
