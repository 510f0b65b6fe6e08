"""The work that is the same for all: batches, a Linear(8, 1), a clock in it; and the process of one environment.

Its bare loop and its engines take turns in it, so that they have the same machine. It needs numpy only.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Example: TypeAlias = tuple[Floats, Floats]
"""A batch: x [32, 8], y [32, 1]."""
Parameters: TypeAlias = list[Floats]
"""The weight, flat, and the bias."""

BATCH, INPUTS = 32, 8
RATE = 0.01
"""Of plain SGD."""
CLOSE = 1e-6
"""Largest difference of parameters that count as equal."""
BARE = "bare"
WARM_UP = 200
"""Batches of the pass that is not timed."""

LIBRARIES: list[str] = []
CALLS: list[float] = []
"""When the network was called, in seconds."""


class Engine(NamedTuple):
    """How to run a pass with that many empty callbacks, make its batches ready, and name its libraries for pip."""

    train: Callable[[list[Any], int], Parameters]
    ready: Callable[[list[Example]], list[Any]]
    libraries: Sequence[str]


def ready_pairs(tensor: Callable[[Floats], Any]) -> Callable[[list[Example]], list[Any]]:
    return lambda examples: [(tensor(x), tensor(y)) for x, y in examples]


def ready_fields(tensor: Callable[[Floats], Any]) -> Callable[[list[Example]], list[Any]]:
    return lambda examples: [{"x": tensor(x), "y": tensor(y)} for x, y in examples]


def empty_callbacks(kind: type, hooks: Sequence[str], count: int) -> list[Any]:
    def nothing(self: Any, *told: Any, **more: Any) -> None:
        pass

    made = type("Nothing", (kind,), dict.fromkeys(hooks, nothing))
    return [made() for _ in range(count)]


TRAINER = {
    "num_train_epochs": 1,
    "per_device_train_batch_size": BATCH,
    "max_grad_norm": 0.0,
    "logging_strategy": "no",
    "save_strategy": "no",
    "disable_tqdm": True,
}
"""The leanest TrainingArguments, as far as transformers and PaddleNLP share them."""


def run_trainer(trainer_class: type, printer: type, batches: list[Any], **given: Any) -> None:
    """Train by a Trainer of transformers or PaddleNLP, which gets ready batches."""
    ready = type("Ready", (trainer_class,), {"get_train_dataloader": lambda self: self.train_dataset})
    trainer = ready(train_dataset=batches, **given)
    trainer.remove_callback(printer)
    trainer.train()


def note_call() -> None:
    """Note that the network is called; the networks of engines and of bare loops do this alike."""
    CALLS.append(perf_counter())


def seconds_between(batches: int) -> float:
    """Return the mean time from one of the last so many calls to the next, and forget them."""
    first, last = CALLS[-batches], CALLS[-1]
    CALLS.clear()
    return (last - first) / (batches - 1)


def examples(count: int) -> list[Example]:
    random = np.random.default_rng(0)
    slope = random.normal(size=(INPUTS, 1))
    x = random.normal(size=(count, BATCH, INPUTS))
    y = x @ slope + 0.1 * random.normal(size=(count, BATCH, 1))
    return list(zip(x.astype("float32"), y.astype("float32"), strict=True))


def first_weight() -> Floats:
    """Return the weight [8, 1] that every network begins with; its bias begins at 0."""
    return np.random.default_rng(1).normal(size=(INPUTS, 1)).astype("float32")


def taken(weight: Any, bias: Any) -> Parameters:
    return [np.array(weight, "float32").ravel(), np.array(bias, "float32").ravel()]


def difference(one: Parameters, other: Parameters) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def prepare(job: Mapping[str, Any]) -> Callable[[], dict[str, float]]:
    """Make the batches ready, and train once with each side before any time is reported.

    The job has ``batches``, their number, and ``sides``, name -> (``MODULE.ENGINE``, callbacks), with the bare loop.
    """
    made = examples(job["batches"])
    sides = {name: _training(engine, callbacks, made) for name, (engine, callbacks) in job["sides"].items()}
    warm = {name: _training(engine, callbacks, made[:WARM_UP]) for name, (engine, callbacks) in job["sides"].items()}
    _round(list(warm), warm, len(made[:WARM_UP]))
    turn = 0

    def work() -> dict[str, float]:
        nonlocal turn
        names = list(sides)
        turn = (turn + 1) % len(names)
        return _round(names[turn:] + names[:turn], sides, len(made))

    return work


def _training(engine: str, callbacks: int, made: list[Example]) -> Callable[[], Parameters]:
    module, _, name = engine.partition(".")
    chosen: Engine = import_module(f"benchmarks.loop.{module}").ENGINES[name]
    LIBRARIES.extend(set(chosen.libraries) - set(LIBRARIES))
    batches = chosen.ready(made)
    return lambda: chosen.train(batches, callbacks)


def _round(order: list[str], sides: Mapping[str, Callable[[], Parameters]], batches: int) -> dict[str, float]:
    """Return the microseconds a batch of each side.

    Raises:
        SystemExit: one did not compute the same as the bare loop.
    """
    times: dict[str, float] = {}
    learned: dict[str, Parameters] = {}
    for name in order:
        gc.collect()
        gc.disable()
        learned[name] = sides[name]()
        times[name] = 1e6 * seconds_between(batches)
        gc.enable()
    for name, parameters in learned.items():
        far = difference(parameters, learned[BARE])
        if not far <= CLOSE:
            raise SystemExit(f"{name} ends {far} away from the bare loop's parameters: not the same work, no times")
    return times
