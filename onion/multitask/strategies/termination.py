"""Whether a pass would ever end: a strategy followed in expectation, before anything is drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onion.multitask.strategies.strategy import Strategy, TaskInfo

LONGEST = 1000
"""A pass that would need more than so many times the batches that are planned for it counts as one without an end."""

CLOSE = 1000
"""So many steps are looked at one by one; later ones ever more sparsely, a thousandth of what lies behind apart."""


def never_finishes(
    strategy: Strategy, tasks: Mapping[str, TaskInfo], planned: Mapping[str, int], targets: Collection[str], stop: bool
) -> str | None:
    """Return a target that the first pass would wait for without an end, or None where there is none or none can tell.

    Args:
        strategy: followed where it says what it will do (``Strategy.foresee``).
        tasks: what it is told of each task.
        planned: batches of each task in a pass.
        targets: the tasks that the pass waits for.
        stop: whether a target is drawn no more when it has its batches.
    """
    lacking = {name: float(planned[name]) for name in targets}
    step, end = 0, LONGEST * sum(planned.values())
    while waiting := [name for name, count in lacking.items() if count > 0]:
        if step >= end:
            return waiting[0]
        weights = strategy.foresee(step, tasks)
        shares = _shares(weights or {}, [name for name in tasks if not stop or lacking.get(name, 1) > 0])
        if not shares:
            return None
        stride = 1 + step // CLOSE
        for name in waiting:
            lacking[name] -= stride * shares.get(name, 0.0)
        step += stride
    return None


def _shares(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    """Return the part of each of these tasks in their weights; nothing if all of it is 0."""
    total = sum(weights.get(name, 0.0) for name in names)
    return {name: weights.get(name, 0.0) / total for name in names} if total else {}
