"""A process that learns: ``trainer FOLDER PORT``, attacked, or ``trainer FOLDER steps STEPS``, undisturbed."""

from __future__ import annotations

import math
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from onion import GradientMachine, Observer, ParameterUpdater, Runner, Saver, State
from onion.online import ControlServer, Journal, Publish, Spool, StreamProvider

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

BATCH, WIDTH = 32, 8
CAPACITY = 10**6
"""Of the spool: it has room for all that attackers put in, so that they cannot keep the good samples out."""

STEPS = "steps"
"""The file that tells how far the run is."""


class Network(paddle.nn.Layer):
    """Guess a number's sine; with dropout, so that the random generators matter too."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = paddle.nn.Sequential(
            paddle.nn.Linear(WIDTH, 16), paddle.nn.ReLU(), paddle.nn.Dropout(0.2), paddle.nn.Linear(16, 1)
        )

    def forward(self, batch: dict[str, Any]) -> Any:
        return self.layers(batch["inputs"])

    def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        return ((outputs[:, 0] - batch["target"]) ** 2).mean()


def example(sample: Any) -> dict[str, Any]:
    """Return what is learned of a sample, ``{"id": a whole number from 0}``; all else is refused."""
    number = sample["id"]
    if type(number) is not int or number < 0:
        raise ValueError(f"id {str(number)[:50]} is no number of a sample")
    inputs = np.sin(np.arange(1, WIDTH + 1) * (number % 1000), dtype="float32")
    return {"inputs": inputs, "target": np.float32(math.sin(number % 1000 / 100))}


def asked(inputs: list[Any]) -> dict[str, Any]:
    """Return the batch of numbers that predictions are asked for, with noise of all generators."""
    noise = random.gauss(0, 1) + np.random.normal() + paddle.rand([1]).item()
    return {"inputs": np.stack([example({"id": number})["inputs"] for number in inputs]) + np.float32(noise)}


def learner(folder: Path, control: ControlServer) -> Runner:
    """Return an onion whose batches are always full, so that they depend on the good samples alone."""
    random.seed(11)
    np.random.seed(11)
    paddle.seed(11)
    network = Network()
    progress = os.open(folder / STEPS, os.O_CREAT | os.O_WRONLY, 0o600)

    def tell(state: State) -> None:
        os.pwrite(progress, b"%020d" % state.step, 0)

    return Runner(
        Saver(folder / "run", every=500),
        Journal(),
        Publish(network, asked, lambda outputs: outputs[:, 0].tolist()),
        StreamProvider(
            Spool(folder / "samples.db", CAPACITY), BATCH, pass_every=320_000, max_wait=3600, prepare=example
        ),
        control,
        Observer(on_batch_end=tell),
        ParameterUpdater(paddle.optimizer.Adam(0.01, parameters=network.parameters())),
        GradientMachine(network),
    )


def main(folder: str, port: str, steps: str | None = None) -> None:
    """Learn until the stop command; or so many steps by the record in the folder, without a service."""
    if steps is None:
        learner(Path(folder), ControlServer(port=int(port))).run()
    else:
        learner(Path(folder), ControlServer(port=None)).run(steps=int(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
