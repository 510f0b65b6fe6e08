"""A runner for one process, made into one for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onion.distributed.data_parallel import DataParallel
from onion.distributed.process_group import ProcessGroup
from onion.engine.item import RunnerItem
from onion.engine.item_tree import walk
from onion.engine.runner import Runner
from onion.items.accumulate import Accumulate
from onion.items.mixed_precision import MixedPrecision
from onion.items.nan_guard import NanGuard
from onion.items.parameter_updater import ParameterUpdater

DECIDING = (MixedPrecision, NanGuard, Accumulate)
"""Items inside an updater that decide about the update of the whole batch, and so go around a DataParallel."""


def distributed(runner: Runner, pieces: int | None = None, exact: bool = False, seed: int = 0, **group: Any) -> Runner:
    """Return the same runner with a ProcessGroup outermost and a DataParallel in each ParameterUpdater.

    If there is one ParameterUpdater, what alters batches outside it (items with ``alters_batches``, and each Forward
    before them) is moved into the DataParallel, where it works on each piece.

        runner = Runner(Saver("run"), DataProvider(data, 64), ParameterUpdater(optimizer), GradientMachine(network))
        distributed(runner, pieces=8, exact=True).run(passes=3)

    Args:
        runner: the runner; its items are shared. If it has a ProcessGroup and DataParallels, new ones replace them.
        pieces: into how many pieces a batch is cut. Default: one a rank.
        exact: see DataParallel. Default False.
        seed: see DataParallel. Default 0.
        group: other arguments of ProcessGroup.

    Raises:
        CompositionError: it cannot be run by several processes; see ProcessGroup and DataParallel.
    """
    for item in (*runner.all(ProcessGroup), *runner.all(DataParallel)):
        runner = runner.without(item)
    for updater in runner.all(ParameterUpdater):
        deciding = [item for item in runner.inside(updater) if isinstance(item, DECIDING)]
        runner = runner.insert_after([updater, *deciding][-1], DataParallel(exact, seed))
    parallels = runner.all(DataParallel)
    if len(parallels) == 1:
        moving = _on_pieces(runner.around(parallels[0]))
        runner = (runner.without(*moving) if moving else runner).insert_after(parallels[0], *moving)
    return runner.with_items((ProcessGroup(pieces, **group), *runner.items))


def _on_pieces(items: Sequence[RunnerItem]) -> list[RunnerItem]:
    """Return the items that alter batches, and each Forward before them, in their order."""
    found: list[RunnerItem] = []
    for item in reversed(items):
        held = [each for each in walk((item,)) if not each.is_runner]
        altered = found or any(each.alters_batches for each in held)
        if altered and all(each.alters_batches or each.runs_network for each in held):
            found.insert(0, item)
    return found
