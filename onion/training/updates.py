"""How many batches a step of an onion takes, and how many updates it makes: asked of the onion as it is composed.

Items declare it by ``runs_a_step``, ``extra_batches`` and, if it provides the data, ``batches_per_pass`` or, where
passes differ, ``batches_in`` (``onion.engine.item``).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import takewhile
from typing import TYPE_CHECKING

from onion.engine.item import RunnerItem
from onion.engine.item_tree import subitems, walk
from onion.errors import CompositionError

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.schedules import Passes


def updates_in(passes: Passes, updater: RunnerItem, runner: Runner) -> int:
    """Return how many updates an updater makes in so many passes.

    The last step of a pass may have fewer batches; none is carried over into the next pass. Items that skip batches by
    their content (SkipIf, ForTask) are not counted in, and an Accumulate that acts in some steps only (within Every) by
    its mean.

    Raises:
        CompositionError: neither the data nor ``passes`` has the number of batches of a pass.
    """
    steps = steps_of_differing(range(passes.count), runner)
    if steps is None:
        data = _data_of(runner)
        batches = (data.batches_per_pass if data else None) or passes.batches
        if batches is None:
            raise CompositionError(
                f"{updater.name}: the learning rate is planned over {passes.count} passes, but the data do not say how "
                f"many batches a pass has; use Passes({passes.count}, batches=...), or give the schedule its updates."
            )
        steps = passes.count * steps_of(batches, runner)
    return math.floor(steps * _runs(updater, runner))


def steps_of_differing(passes: range, runner: Runner) -> int | None:
    """Return how many steps an onion makes in passes that differ in length; None: they do not, or are unknown."""
    data = _data_of(runner)
    if data is None or data.batches_per_pass is not None or data.batches_in(passes.start) is None:
        return None
    known = takewhile(bool, map(data.batches_in, passes))  # up to the last that has any
    return sum(steps_of(batches, runner) for batches in known if batches)


def _data_of(runner: Runner) -> RunnerItem | None:
    """Return the item whose batches are read."""
    return next((item for item in reversed([*runner.walk()]) if item.provides_data), None)


def steps_of(batches: int, runner: Runner) -> int:
    """Return how many steps an onion makes of so many batches of one pass."""
    return math.ceil(batches / batches_a_step(runner))


def batches_a_step(runner: Runner) -> Fraction:
    """Return how many batches a step takes from the data: 1, and what Accumulate takes besides."""
    # What runs a second time within a step works on the same batches.
    taking = [item for item in runner.walk() if item.extra_batches]
    return 1 + sum((item.extra_batches * min(_runs(item, runner), Fraction(1)) for item in taking), Fraction(0))


def _runs(item: RunnerItem, runner: Runner) -> Fraction:
    """Return how often an item's ring runs in a step."""
    runs = Fraction(1)
    for other in runner.walk():
        around = walk(subitems(other)) if subitems(other) else runner.inside(other)
        if any(item is each for each in around):
            runs *= other.runs_a_step
    return runs
