"""Onion, in its smallest form and with ten more items, and the bare loops beside it, of batches of arrays."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion import (
    DataProvider,
    EarlyStopping,
    Evaluator,
    Forward,
    GradientMachine,
    HookIterator,
    Logger,
    Observer,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    State,
    Tester,
)
from onion.device import paddle, to_tensors, use_threads
from onion.distributed import distributed

# onion comes before Paddle, which paddle_engines imports
# isort: split
from benchmarks.loop.paddle_engines import PADDLE, Noted, initialized, parameters, sgd
from benchmarks.loop.work import INPUTS, Engine, Floats, Parameters, ready_fields

use_threads()

Fields = dict[str, Floats]
NEVER = 10**9
mse_loss: Any = paddle().nn.functional.mse_loss
to_tensor: Any = paddle().to_tensor


class Regression(Noted):
    def forward(self, batch: dict[str, Any]) -> Any:
        return super().forward(batch["x"])

    def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        return mse_loss(outputs, batch["y"])


class Nothing(RunnerItem):
    def on_batch(self, state: State) -> HookIterator:
        yield


class Count:
    """The cheapest metric: it counts batches and reads nothing."""

    def reset(self) -> None:
        self.count = 0

    def update(self, outputs: Any, batch: Any) -> None:
        self.count += 1

    def result(self) -> dict[str, float]:
        return {"batches": self.count}


def by_hand(tensors_of: Callable[[Fields], dict[str, Any]]) -> Callable[[list[Fields], int], Parameters]:
    """Return the loop by hand, which makes tensors of each batch in some way."""

    def train(batches: list[Fields], callbacks: int = 0) -> Parameters:
        layer = initialized(Regression(INPUTS, 1))
        optimizer = sgd(layer)
        layer.train()
        for batch in batches:
            tensors = tensors_of(batch)
            loss = mse_loss(layer(tensors), tensors["y"])
            loss.backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
        return parameters(layer)

    return train


def trained(batches: list[Fields], layer: Regression, *around: RunnerItem) -> Parameters:
    """Train a network in the three items of an onion, and further ones around them.

    The list is a source whose examples are batches, so that what DataProvider costs is counted.
    """
    onion(batches, layer, *around).run(passes=1)
    return parameters(layer)


def onion(batches: list[Fields], layer: Regression, *around: RunnerItem) -> Runner:
    return Runner(
        *around,
        DataProvider(batches, 1, collate=lambda examples: examples[0], prefetch=0),
        ParameterUpdater(sgd(layer)),
        GradientMachine(layer),
    )


def of_one_process(batches: list[Fields], callbacks: int = 0) -> Parameters:
    """The same with the items for several processes, in one."""
    layer = initialized(Regression(INPUTS, 1))
    distributed(onion(batches, layer)).run(passes=1)
    return parameters(layer)


def minimal(batches: list[Fields], callbacks: int) -> Parameters:
    """DataProvider, ParameterUpdater, GradientMachine; a callback is a ring that only yields."""
    return trained(batches, initialized(Regression(INPUTS, 1)), *(Nothing() for _ in range(callbacks)))


def ten_more(batches: list[Fields], callbacks: int = 0) -> Parameters:
    """Ten more items, all between their periods: what a training has around it, and four observers."""
    layer = initialized(Regression(INPUTS, 1))
    with tempfile.TemporaryDirectory() as folder:
        return trained(
            batches,
            layer,
            Progress(seconds=NEVER, file=io.StringIO(), lines=False),
            Saver(folder, every=NEVER),
            Logger(Path(folder) / "metrics.jsonl", every=NEVER),
            EarlyStopping("tester.accuracy"),
            Tester(Runner(DataProvider(batches[:1], 1, prefetch=0), Forward(layer)), every=NEVER),
            Evaluator(Count()),
            Observer(on_batch_begin=lambda state: None),
            Observer(on_batch_end=lambda state: None),
            Observer(on_batch_begin=lambda state: None, on_batch_end=lambda state: None),
            Observer(on_pass_begin=lambda state: None, on_batch_end=lambda state: None),
        )


LOOPS = {
    "bare_arrays": by_hand(lambda batch: {"x": to_tensor(batch["x"]), "y": to_tensor(batch["y"])}),
    "bare_to_tensors": by_hand(to_tensors),
    "onion": minimal,
    "onion_of_ten": ten_more,
    "onion_distributed": of_one_process,
}
ENGINES = {name: Engine(train, ready_fields(lambda array: array), [PADDLE]) for name, train in LOOPS.items()}
