"""Loops whose data come from a `paddle.io.DataLoader`, with workers and without, in an order of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onion import DataProvider, Runner, TaskData, TaskSampler
from tests.onions.parts import EXAMPLES, Network, begun, kept, learning

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


class Augmented(paddle.io.Dataset):  # type: ignore[misc]
    """The examples, disturbed by random numbers where they are read by a worker."""

    def __len__(self) -> int:
        return len(EXAMPLES)

    def __getitem__(self, index: int) -> dict[str, Any]:
        example = EXAMPLES[index]
        by = np.random.random() if paddle.io.get_worker_info() else 0.0
        return {**example, "x": example["x"] + np.float32(0.01 * by)}


class Stream(paddle.io.IterableDataset):  # type: ignore[misc]
    """The examples in the order of their numbers."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from EXAMPLES


def shuffled(workers: int) -> Any:
    return paddle.io.DataLoader(Augmented(), batch_size=4, shuffle=True, num_workers=workers)


def of(workers: int) -> Any:
    def compose(folder: Path) -> Runner:
        return Runner(*kept(folder), DataProvider(shuffled(workers)), *learning(Network()))

    return begun(compose)


def stream(folder: Path) -> Runner:
    data = DataProvider(paddle.io.DataLoader(Stream(), batch_size=4, num_workers=1))
    return Runner(*kept(folder), data, *learning(Network()))


def of_tasks(folder: Path) -> Runner:
    """One of two tasks has a DataLoader."""
    tasks = {"a": TaskData(DataProvider(shuffled(0))), "b": TaskData(DataProvider(EXAMPLES, 4, prefetch=0))}
    return Runner(*kept(folder), TaskSampler(tasks), *learning(Network()))


DATA_LOADERS = {
    "data loader": of(0),
    "data loader with workers": of(2),
    "data loader of a stream": begun(stream),
    "data loader of a task": begun(of_tasks, passes=1),
}
