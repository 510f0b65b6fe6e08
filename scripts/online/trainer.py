"""A process that trains: ``python -m scripts.online.trainer KIND FOLDER SAMPLES [PORT | PIECES pieces]``.

With ``4 pieces`` a batch is cut into so many, for a training in several processes. Its network has a parameter per
sample, which counts how often the sample was trained on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import paddle

from onion import GradientMachine, Observer, ParameterUpdater, Runner, RunnerItem, Saver, Signals, State
from onion.distributed import distributed
from onion.online import ControlServer, Journal, StreamProvider
from onion.online.sources.source import Source
from scripts.online.sources import PLACES


def main(kind: str, folder: str, samples: str, number: str | None = None, of: str = "port") -> None:
    """Train until all samples have been learned."""
    control = None if number is None or of == "pieces" else ControlServer(port=int(number))
    source = PLACES[kind](Path(folder)).source()
    runner = counting(source, Path(folder, "run"), int(samples), control)
    if number is not None and of == "pieces":
        runner = distributed(runner, pieces=int(number))
    runner.run()


def again(folder: Path) -> Runner:
    """Return the runner of a spool named in the environment, for ``onion replay``."""
    source = PLACES["spool"](Path(os.environ["PLACE"])).source()
    return counting(source, folder, int(os.environ["SAMPLES"]), ControlServer(port=None))


class Counts(paddle.nn.Layer):
    """A parameter per sample. The gradient of the loss is -1 for each time that a sample is in the batch."""

    def __init__(self, samples: int) -> None:
        super().__init__()
        self.table = paddle.nn.Embedding(samples, 1)
        self.table.weight.set_value(paddle.zeros([samples, 1]))

    def forward(self, batch: dict[str, Any]) -> Any:
        return self.table(batch["id"])

    def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        """Return minus their sum, so that SGD with a learning rate of 1 adds 1 to each."""
        return -outputs.sum()


class Whole(RunnerItem):
    """Let each piece of a batch count fully: the loss is a sum over samples, and pieces are averaged by share."""

    alters_batches = True  # so that it is run for each piece

    def on_batch(self, state: State) -> None:
        """Undo the share of a piece."""
        if self.group is not None and self.group.piece is not None:
            state.share = 1 / self.group.piece.weight


class Line(paddle.nn.Layer):
    """A second network, whose learning rate may be changed without affecting the counts."""

    def __init__(self) -> None:
        super().__init__()
        paddle.seed(5)
        self.fc = paddle.nn.Linear(1, 1)

    def forward(self, batch: dict[str, Any]) -> Any:
        """Predict the last digit of each sample's number from its last two."""
        return self.fc((batch["id"] % 100).astype("float32").reshape([-1, 1]) / 100)

    def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        return ((outputs[:, 0] - (batch["id"] % 10).astype("float32") / 10) ** 2).mean()


def counting(
    source: Source, folder: Path, samples: int, control: ControlServer | None = None, every: int = 20
) -> Runner:
    """Return a runner that ends when it has been trained on all samples."""
    counts, line = Counts(samples), Line()
    provider = StreamProvider(source, batch_size=100, pass_every=5_000, max_wait=0.02)
    counted = ParameterUpdater(paddle.optimizer.SGD(1.0, parameters=counts.parameters()))
    counted.name = "counted"
    machine = GradientMachine(counts)
    machine.name = "counts"

    def enough(state: State) -> None:
        if provider.log_values()["examples"] >= samples:
            state.stop("all samples have been learned")

    return Runner(
        Signals(),
        Saver(folder, every=every),
        Journal(),
        provider,
        *([] if control is None else [control]),
        Observer(on_pass_begin=enough, on_batch_end=enough),  # a kill may come when all of it is done and saved
        Runner(ParameterUpdater(paddle.optimizer.Adam(0.01, parameters=line.parameters())), GradientMachine(line)),
        Runner(counted, Whole(), machine),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
