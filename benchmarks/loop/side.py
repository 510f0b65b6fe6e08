"""A process of one environment: its bare loop and its engines take turns in it, so that they have the same machine."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from benchmarks.common.worker import Answer, serve
from benchmarks.loop.work import CLOSE, Parameters, difference, examples, seconds_between

Train = Callable[[], Parameters]
LIBRARIES: list[str] = []
BARE = "bare"
WARM = 200
"""Batches of the pass that nobody times."""


def prepare(job: Mapping[str, Any]) -> Callable[[], Answer]:
    """Make the batches ready, and train once with each side before any time is told.

    Args:
        job: ``batches``, how many; ``sides``, name -> (engine, callbacks), the bare loop first.
    """
    made = examples(job["batches"])
    sides = {name: _train(engine, callbacks, made) for name, (engine, callbacks) in job["sides"].items()}
    few = made[:WARM]
    warm = {name: _train(engine, callbacks, few) for name, (engine, callbacks) in job["sides"].items()}
    _round(list(warm), warm, len(few))
    turn = 0

    def work() -> Answer:
        nonlocal turn
        names = list(sides)
        turn = (turn + 1) % len(names)
        return _round(names[turn:] + names[:turn], sides, len(made))

    return work


def _train(engine: str, callbacks: int, made: list[Any]) -> Train:
    module = import_module(f"benchmarks.loop.engines.{engine}")
    LIBRARIES.extend(set(module.LIBRARIES) - set(LIBRARIES))
    batches = module.ready(made)
    return lambda: module.train(batches, callbacks)


def _round(order: list[str], sides: Mapping[str, Train], batches: int) -> Answer:
    """Return the microseconds a batch of each side.

    Raises:
        SystemExit: one did not compute the same as the bare loop.
    """
    told: Answer = {}
    learned: dict[str, Parameters] = {}
    for name in order:
        gc.collect()
        gc.disable()
        learned[name] = sides[name]()
        told[name] = 1e6 * seconds_between(batches)
        gc.enable()
    for name, parameters in learned.items():
        far = difference(parameters, learned[BARE])
        if not far <= CLOSE:
            raise SystemExit(f"{name} ends {far} away from the bare loop's parameters: not the same work, no times")
    return told


if __name__ == "__main__":
    serve(prepare, LIBRARIES)
