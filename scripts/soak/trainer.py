"""A process that learns: ``trainer FOLDER BATCHES PORT``, or ``trainer bare BATCHES`` in a plain Paddle loop."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from onion import GradientMachine, Logger, MovingAverage, ParameterUpdater, Runner, Saver, online
from scripts.soak.growth import resident

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

BATCH = 8
CAPACITY = 2_000
SPOOL_BYTES = 4 * 2**20
"""Limited by size, since a day of its samples comes in minutes here."""

CHECKPOINT_EVERY = 500


class Network(paddle.nn.Layer):
    """Predict whether the sum of four numbers is above 0."""

    def __init__(self) -> None:
        super().__init__()
        paddle.seed(5)
        self.linear = paddle.nn.Linear(4, 2)

    def forward(self, batch: dict[str, Any]) -> Any:
        return self.linear(batch["inputs"])

    def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        return paddle.nn.functional.cross_entropy(outputs, batch["labels"])


def example(sample: dict[str, Any]) -> dict[str, Any]:
    return {"inputs": np.array(sample["inputs"], "float32"), "labels": np.int64(sample["labels"])}


def whole(folder: Path, port: int) -> Runner:
    network = Network()
    smooth = MovingAverage(network, 0.99)
    publish = online.Publish(smooth, lambda inputs: {"inputs": np.array(inputs, "float32")}, lambda out: out.tolist())
    spool = online.Spool(folder / "samples.db", CAPACITY, SPOOL_BYTES)
    return Runner(
        Saver(folder / "run", every=CHECKPOINT_EVERY),
        Logger(folder / "log.jsonl", every=CHECKPOINT_EVERY),
        online.Journal(),
        publish,
        online.StreamProvider(spool, BATCH, pass_every=3600 * BATCH, max_wait=60, prepare=example),
        online.ControlServer(port=port),
        online.ProgressiveValidation(network),
        online.Switch(online.ReplayBuffer(1000, ratio=0.5)),
        smooth,
        ParameterUpdater(paddle.optimizer.Adam(0.001, parameters=network.parameters())),
        GradientMachine(network),
    )


def bare(batches: int, looks: int = 40) -> list[tuple[int, int]]:
    """Train the network in a plain loop of Paddle's; return (batch, bytes of memory) from time to time."""
    network = Network()
    optimizer = paddle.optimizer.Adam(0.001, parameters=network.parameters())
    inputs, labels = np.zeros((12, 4), "float32"), np.zeros(12, "int64")
    found = []
    for number in range(batches):
        batch = {"inputs": paddle.to_tensor(inputs), "labels": paddle.to_tensor(labels)}
        network.loss(network(batch), batch).backward()
        optimizer.step()
        optimizer.clear_grad()
        if number % max(1, batches // looks) == 0:
            found.append((number, resident("self")))
    return found


def main(folder: str, batches: str, port: str | None = None) -> None:
    """Learn; of the bare loop, tell the memory as a line of JSON."""
    if port is None:
        print(json.dumps(bare(int(batches))))
    else:
        whole(Path(folder), int(port)).run(steps=int(batches))


if __name__ == "__main__":
    main(*sys.argv[1:])
