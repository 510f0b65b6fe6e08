"""Trainings whose batches have many pieces: full ones, of several sizes, and, in the last batch of a pass, empty ones.

As in ``tests.onions``, each saves in its folder and keeps a log there; none takes more than a second or two.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from onion import (
    Accumulate,
    DataProvider,
    Evaluator,
    GradientMachine,
    MovingAverage,
    NanGuard,
    Runner,
    RunnerItem,
    SplitOnMemoryError,
    TaskData,
    TaskSampler,
    Tester,
    UseAverage,
)
from onion.multitask.strategies import ByLoss
from onion.tasks.finetune.fine_tune import fine_tune
from onion.tasks.networks.multi_head import MultiHead
from onion.testing import toy_examples
from tests.onions import ONIONS, Kind
from tests.onions.many_networks import gan
from tests.onions.many_tasks import Head
from tests.onions.material import OPTIONS, encoder, files
from tests.onions.parts import Network, SquaredError, adamw, begun, kept, tested

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

PIECES, BATCH = 8, 16
EXAMPLES = toy_examples(67)  # four full batches and one of three examples, which leaves five pieces empty


def data(examples: Any = EXAMPLES, batch_size: int = BATCH, **settings: Any) -> DataProvider:
    return DataProvider(examples, batch_size, shuffle=True, **settings)


def uneven(folder: Path) -> Runner:
    """Dropout, clipping and AdamW; a metric over the training itself."""
    network = Network()
    test = Tester(tested(network), every=4)
    return Runner(*kept(folder), test, Evaluator(SquaredError()), data(), adamw(network), GradientMachine(network))


class Normalized(Network):
    """A network with batch normalization, whose running means are buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.normalization = paddle.nn.BatchNorm1D(8)

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        return super().forward({**batch, "x": self.normalization(batch["x"])})


def guarded(folder: Path) -> Runner:
    """Running means and an average of them; updates of three batches, now and then one that is no number."""
    network = Normalized()
    smooth = MovingAverage(network, 0.7)
    broken = [*EXAMPLES[:40], {**EXAMPLES[40], "y": EXAMPLES[40]["y"] * float("nan")}, *EXAMPLES[41:]]
    return Runner(
        *kept(folder),
        Tester(tested(network, UseAverage(smooth)), every=2),
        data(broken, 6),
        smooth,
        adamw(network),
        NanGuard("rollback", check_gradients=True, snapshot_every=2),
        Accumulate(3),
        GradientMachine(network),
    )


def narrow(network: Any, most: int) -> Any:
    """Return a network for which the memory now runs out with more than so many examples."""

    def look(layer: Any, inputs: Any) -> None:
        if layer.training and len(inputs[0]["x"]) > most:
            raise MemoryError("out of memory")

    network.register_forward_pre_hook(look)
    return network


def out_of_memory(folder: Path) -> Runner:
    """Pieces of seven examples and of six, which are halved until there are three."""
    network = narrow(Network(), 3)
    rings: list[RunnerItem] = [adamw(network), SplitOnMemoryError(network), GradientMachine(network)]
    return Runner(*kept(folder), data(batch_size=52), *rings)


def three_tasks(folder: Path) -> Runner:
    """Tasks by their losses; a batch uses one head of three."""
    shared = paddle.nn.Linear(8, 6)
    network = MultiHead(shared, {name: narrow(Head(shared), 2) for name in ("slope", "valley", "stream")})
    tasks = {
        "slope": TaskData(data()),
        "valley": TaskData(data(EXAMPLES[:30], 24, seed=1), mix_ratio=0.5),
        "stream": TaskData(DataProvider(lambda: iter(EXAMPLES[:21]), 8), mix_ratio=0.5, target=False),
    }
    return Runner(
        *kept(folder),
        Tester(tested(network.networks["slope"]), every=4),
        TaskSampler(tasks, ByLoss(rate=0.5, lag=2), seed=3),
        adamw(network),
        SplitOnMemoryError(network),
        GradientMachine(network),
    )


def tagged(folder: Path) -> Runner:
    """Named entities by a conditional random field."""
    return _of_task(folder, "token-classification", max_length=16, decoder="crf")


def answered(folder: Path) -> Runner:
    """Answers to questions, of which long texts are cut into windows."""
    return _of_task(folder, "question-answering", **OPTIONS["question-answering"])


def _of_task(folder: Path, name: str, **options: Any) -> Runner:
    settings = {"batch_size": BATCH, "learning_rate": 3e-3, "test_every": 3, "log_every": 1, "passes": 2}
    return fine_tune(name, *files(name, 43), folder, encoder=str(encoder()), options=options, **settings)


TRAININGS: dict[str, Kind] = {
    "uneven tail": begun(uneven),
    "guarded": begun(guarded),
    "out of memory": begun(out_of_memory),
    "three tasks": begun(three_tasks, passes=1),
    "gan": begun(partial(gan, provider=data)),
    "gan of examples": ONIONS["example gan_gaussians"],
    "tagging": begun(tagged),
    "questions": begun(answered),
}
