"""Batches by tokens, and examples that are others in every pass: alone, in workers, and as tasks."""

from __future__ import annotations

from pathlib import Path

from onion import DataProvider, GradientMachine, Runner, TaskData, TaskSampler
from onion.multitask.strategies import Uniform
from onion.tasks.networks.multi_head import MultiHead
from tests.data.computed import Anew
from tests.onions.many_tasks import Head
from tests.onions.parts import EXAMPLES, adamw, begun, kept, trained

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

LENGTHS = [3, 9, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7]


def data(source: object = EXAMPLES, **settings: object) -> DataProvider:
    return DataProvider(source, **{"tokens_per_batch": 20, "lengths": LENGTHS, "shuffle": True, **settings})


def of_tasks(folder: Path) -> Runner:
    """Two tasks, each in passes of its own."""
    encoder = paddle.nn.Linear(8, 6)
    network = MultiHead(encoder, {name: Head(encoder) for name in ("masked", "pairs")})
    tasks = {
        "masked": TaskData(data(Anew(EXAMPLES, LENGTHS), lengths=None)),
        "pairs": TaskData(data(EXAMPLES[:6], lengths=LENGTHS[:6], seed=1)),
    }
    sampler = TaskSampler(tasks, Uniform(), seed=2)
    return Runner(*kept(folder), sampler, adamw(network), GradientMachine(network))


BY_TOKENS = {
    "tokens": trained(lambda network: [data()]),
    "tokens in order": trained(lambda network: [data(shuffle=False, prefetch=0)]),
    "tokens by weight": trained(lambda network: [data(weights=range(14), num_workers=2)]),
    "other examples in every pass": trained(lambda network: [data(Anew(EXAMPLES), lengths=None)]),
    "tasks by tokens": begun(of_tasks),
}
